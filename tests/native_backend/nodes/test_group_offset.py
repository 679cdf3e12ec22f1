"""The text beside a group offset: what it says, of which release, and that no foreign one is taken for it."""

from __future__ import annotations

from zlib import crc32

import pytest

from native_backend.nodes.group_offset import low_of, parse_projection, projection


def test_the_mark_is_in_the_text_and_not_the_offset() -> None:
    position = projection(1000, 7, 42)
    assert position[0] == 1000
    assert (low_of(position), parse_projection(position)) == (7, 42)
    assert low_of((1000, position[1] + "\0")) == 7, "as one client writes it"


def test_an_earlier_release_had_the_mark_as_its_offset() -> None:
    position = 12, f"realmgate1;42;{crc32(b'12;42'):08x}"
    assert (low_of(position), parse_projection(position)) == (12, 42)


@pytest.mark.parametrize(
    "position",
    [(1000, ""), (1000, "mine"), (1001, projection(1000, 7, 42)[1]), (1000, "realmgate2;42;7;00000000"),
     (1000, "realmgate2;42"), (1000, "realmgate3;1;2;3"), (5, "realmgate1;x;00000000")],
)  # fmt: skip
def test_a_foreign_commit_stands_where_it_says(position: tuple[int, str]) -> None:
    assert (low_of(position), parse_projection(position)) == (position[0], None)
