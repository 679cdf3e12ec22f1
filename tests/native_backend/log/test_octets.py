"""A column of octet strings behaves as the list of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from native_backend.log.octets import Octets

STRINGS = st.lists(st.binary(max_size=40), max_size=12)


@given(STRINGS, st.integers(-14, 14), st.integers(-14, 14))
def test_it_is_a_sequence(strings: list[bytes], start: int, stop: int) -> None:
    column = Octets(strings)
    assert len(column) == len(strings)
    assert list(column) == strings
    part = column[start:stop]
    column.append(b"later")  # a slice is what it was
    assert list(part) == strings[start:stop]
    assert list(part[1:]) == strings[start:stop][1:]
    assert part.size == sum(map(len, strings[start:stop]))
    assert part.largest == max(map(len, strings[start:stop]), default=0)
    assert part.letters == b"".join(strings[start:stop])
    if -len(strings) <= start < len(strings):
        assert Octets(strings)[start] == strings[start]


@given(STRINGS, st.integers(0, 12), st.binary(max_size=2))
def test_alike(strings: list[bytes], start: int, head: bytes) -> None:
    size = len(strings[start]) if start < len(strings) else 0
    end = start
    while end < len(strings) and len(strings[end]) == size and strings[end].startswith(head):
        end += 1
    assert Octets(strings).alike(start, size, head) == end


@given(STRINGS.filter(bool), st.integers(0, 45), st.data())
def test_front(strings: list[bytes], most: int, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, len(strings) - 1))
    assert Octets(strings).front(i, most) == (len(strings[i]), strings[i][:most])
    assert Octets(strings)[i:].front(0, most) == (len(strings[i]), strings[i][:most])


@given(st.integers(0, 2**63), st.integers(0, 20))
def test_number(first: int, count: int) -> None:
    column = Octets([b"before"])
    column.number(b"a;", first, count, b";z")
    assert list(column) == [b"before", *(b"a;%d;z" % number for number in range(first, first + count))]
    assert list(column.empty()) == []


@given(st.integers(0, 2**63), st.integers(1, 20), st.integers(0, 19), STRINGS, st.booleans())
def test_what_one_call_has_numbered_shows_its_letters_in_one_of_them(
    first: int, count: int, start: int, more: list[bytes], by_number: bool
) -> None:
    column = Octets()
    column.number(b"a;", first, count, b";T5")
    part = column[start:count]
    for string in more:
        if by_number:
            column.number(string, 0, 1, b";D")
        else:
            column.append(string)
    assert part.letters == (b"a;%d;T5" % (first + start) if start < count else b"")
    others = [*column]
    assert column.letters == (b"".join(others) if more else others[0])
    assert column[count:].letters == b"".join(others[count:])


def test_what_it_refuses() -> None:
    column = Octets([b"a"])
    with pytest.raises(TypeError):
        Octets(["a"])  # type: ignore[list-item]
    with pytest.raises(IndexError):
        column[1]
    for i, most in ((1, 1), (-1, 1), (0, -1)):
        with pytest.raises(IndexError):
            column.front(i, most)
    with pytest.raises(TypeError):
        column.front(0)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        column.alike(0, 1, "a")  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        column.number(b"", -1, 1, b"")
    assert list(column) == [b"a"]
    with pytest.raises(TypeError):
        column[:1].append(b"b")
    with pytest.raises(ValueError, match="no step"):
        column[::2]


def test_a_string_may_come_as_a_bytearray() -> None:
    grown, column = bytearray(b"part"), Octets([b"one"])
    grown += b" by part"
    column.append(grown)
    grown.clear()
    assert [*column] == [b"one", b"part by part"]
    with pytest.raises(TypeError):
        column.append("text")  # type: ignore[arg-type]
