"""Which keys say that an event expires, and when."""

from __future__ import annotations

import pytest

from native_backend.events.expiry import NEVER, expiries, may_expire, stretch
from native_backend.log.event_key import ttl_ms

OWN = b"1;basic;19aa-9c2e;7;1;4;T250;10;;30"
NONE = b"1;basic;19aa-9c2e;7;1;4;;10;;30"


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (OWN, 250),
        (NONE, 0),
        (b"1;none;19aa-9c2e;7", 0),
        (b"1;basic;19aa-9c2e;7;1;4;250;10;;30", 0),  # an earlier release
        (b"2;12;7;rejected;" + OWN, 0),  # a copy
        (b"a native producer's;T5", 0),
        (b"1;basic;a;7;1;4;Tx;0;;0", 0),
        (b"1;;T5", 0),
        (None, 0),
    ],
)
def test_its_own_time_to_live(key: bytes | None, expected: int) -> None:
    assert ttl_ms(key) == expected


def test_a_chunk_that_cannot_expire_is_seen_at_once() -> None:
    assert not may_expire([NONE, None, b"1;none;19aa-9c2e;7"])
    assert may_expire([NONE, OWN])
    assert expiries([1, 2], [NONE, None], 0) is None


def test_an_events_own_time_stands_for_its_nodes() -> None:
    assert expiries([1000, 1000, 1000], [NONE, OWN, None], 0) == [NEVER, 1250, NEVER]
    assert expiries([1000, 1000, 1000], [NONE, OWN, None], 400) == [1400, 1250, 1400]
    assert expiries([1000, 2000], [NONE, None], 400) == [1400, 2400]


def test_stretches_of_the_living_and_the_others() -> None:
    times = [5, 5, 20, 20, 5]
    assert stretch(times, 0, 5, 10) == (2, False)
    assert stretch(times, 2, 5, 10) == (4, True)
    assert stretch(times, 4, 5, 10) == (5, False)
