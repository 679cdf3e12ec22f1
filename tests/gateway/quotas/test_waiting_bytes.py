"""Whose sockets are read while messages wait for the realm."""

from __future__ import annotations

import pytest

from gateway.evidence.notices import Notices
from gateway.quotas.shares import SharedLimit
from gateway.quotas.waiting_bytes import WaitingBytes
from native_backend.clock import SystemClock


class Socket:
    is_read, changes = True, 0

    def pause(self, pressure: bool) -> None:
        self.changes += self.is_read is pressure
        self.is_read = not pressure


class Peers:
    """A hog with two sockets, and another peer."""

    def __init__(self, percent: int = 75) -> None:
        limit = SharedLimit("in_flight_bytes", "octets in flight", 1_000, lambda: percent)
        self.waiting = WaitingBytes(limit, Notices(SystemClock()))
        self.sockets = [("hog", Socket()), ("hog", Socket()), ("other", Socket())]
        for holder, socket in self.sockets:
            self.waiting.join(holder, socket)

    @property
    def read(self) -> dict[str, bool]:
        assert self.sockets[0][1].is_read is self.sockets[1][1].is_read
        return {holder: socket.is_read for holder, socket in self.sockets}


BOTH, ONE, NONE = {"hog": True, "other": True}, {"hog": False, "other": True}, {"hog": False, "other": False}


def test_one_that_has_more_than_its_share_is_not_read_until_it_has_half_of_that() -> None:
    peers = Peers()
    peers.waiting.count("hog", 750)
    assert peers.read == BOTH
    peers.waiting.count("hog", 1)
    assert peers.read == ONE
    assert [*peers.waiting.standing()] == [
        "reading from 'hog' pauses: 751 of 751 octets that wait for the realm are its; limits.in_flight_bytes is 1,000"
    ]
    peers.waiting.count("hog", 100)
    peers.waiting.release("hog", 475)
    assert peers.read == ONE, "376 of 375"
    peers.waiting.release("hog", 1)
    assert peers.read == BOTH and not [*peers.waiting.standing()]
    assert [socket.changes for _, socket in peers.sockets] == [2, 2, 0]


def test_what_others_have_makes_a_share_smaller_and_what_they_give_back_larger() -> None:
    peers = Peers()
    peers.waiting.count("other", 400)
    peers.waiting.count("hog", 451)
    assert peers.read == ONE
    peers.waiting.release("hog", 200)
    assert peers.read == ONE, "251 of 225, half of its share"
    peers.waiting.release("other", 400)
    assert peers.read == BOTH, "its share is 750 again"


@pytest.mark.parametrize("percent", [75, 100])
def test_where_all_is_used_up_each_that_sends_is_held_back(percent: int) -> None:
    peers = Peers(percent)
    for holder in ("a", "b", "c", "d"):
        peers.waiting.count(holder, 250)
    peers.waiting.count("hog", 10)
    peers.waiting.count("other", 10)
    assert peers.read == NONE
    peers.waiting.count("third", 0)  # it commits settlements alone
    peers.waiting.join("third", third := Socket())
    assert third.is_read
    peers.waiting.release("hog", 10)
    assert peers.read == ONE | {"hog": True, "other": False}, "it has nothing in flight any more"
    for holder in ("a", "b", "c", "d"):
        peers.waiting.release(holder, 250)
    assert peers.read == BOTH


def test_of_many_that_are_held_back_a_few_are_named() -> None:
    peers = Peers()
    peers.waiting.count("hog", 2_000)
    for number in range(40):
        peers.waiting.count(f"peer-{number}", 1)
    lines = [*peers.waiting.standing()]
    assert len(peers.waiting) == 41 and len(lines) == 4
    assert (
        lines[0].startswith("reading from 'hog' pauses: 2,000 of 2,040 ") and lines[3] == "reading from 38 more pauses"
    )


def test_a_socket_that_comes_later_is_as_the_others_of_its_holder_and_one_that_went_is_let_go() -> None:
    peers = Peers()
    peers.waiting.count("hog", 800)
    late, gone = Socket(), peers.sockets[0][1]
    peers.waiting.join("hog", late)
    assert not late.is_read
    peers.waiting.leave("hog", gone)
    peers.waiting.leave("stranger", gone)
    peers.waiting.release("hog", 800)
    assert late.is_read and not gone.is_read


def test_where_there_is_no_other_one_may_have_all() -> None:
    peers = Peers(percent=100)
    peers.waiting.count("hog", 1_000)
    assert peers.read == BOTH
    peers.waiting.count("hog", 1)
    assert peers.read == ONE
