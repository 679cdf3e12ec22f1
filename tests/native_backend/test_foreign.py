"""Which events came natively: told by the keys of a chunk, at once; and only those are framed."""

from __future__ import annotations

import pytest

from native_backend.foreign import framed, is_ours


def frame(value: bytes) -> bytes:
    return b"<" + value + b">"


@pytest.mark.parametrize(
    "keys",
    [
        [],
        [b"1;basic;r;1"],
        [b"1;basic;r;1", b"1;none;r;2"],
        [b"1;basic;r;1", b"2;7;3;expired;1;basic;r;1"],
        [b"2;7;3;moved;a foreign key", b"2;7;4;moved;"],
    ],
)
def test_what_gateways_wrote_costs_no_copy(keys: list[bytes | None]) -> None:
    values = [b"v"] * len(keys)
    assert framed(keys, values, frame) is values


@pytest.mark.parametrize("foreign", [None, b"", b"order-7", b"3;new", b"x\n1;", b"11;", b"x\0\n\0"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_came_natively_is_framed_and_nothing_else(foreign: bytes | None, at: int) -> None:
    keys: list[bytes | None] = [b"1;basic;r;1", b"2;7;3;expired;1;"]
    keys.insert(at, foreign)
    values = [b"a", b"b", b"c"]
    assert framed(keys, values, frame) == [frame(value) if index == at else value for index, value in enumerate(values)]
    assert values == [b"a", b"b", b"c"], "the log's own column stays"
    assert not is_ours(foreign)
