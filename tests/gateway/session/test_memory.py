"""What peers make the gateway hold has a sum and a share for each connection: at it deliveries are held back, a message
that is here in part ends its link, and the others are served on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.amqp.in_part import InPart
from gateway.quotas.held_bytes import DELIVERY_BYTES, HeldAccount, HeldBytes
from gateway.session.memory import STUCK_S
from mappings import load_tables
from tests.kit.realm.stopped_clock import StoppedClock
from tests.kit.scenarios.environment import Environment
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation
from tests.kit.wire.frames import Seen

TABLES = load_tables()
REFUSED = "amqp:resource-limit-exceeded"
MESSAGE = 1_000  # octets, the largest
PART = 400
WHOLE = frames.message(b"event")


def environment(**limits: int) -> Environment:
    """So many connections may come that none of them has a floor: all of `held_bytes` is for who comes first."""
    return Environment(TABLES, message_size_bytes=MESSAGE, connections=10_000, **limits)


class Publisher:
    """A connection with messages in several frames."""

    def __init__(self, env: Environment, container: str) -> None:
        self.peer = env.peer(container)
        self._rests: list[bytes] = []

    def begin(self, parts: int = 1) -> list[Seen]:
        """Another link, with a message of which so many parts come and one does not; what ends then."""
        number, message = len(self._rests), frames.message(b"x" * PART * parts)
        self._rests.append(message[PART * parts :])
        seen = self.peer.say(frames.attach_sender("q", number, f"link {number}"))
        for at in range(0, PART * parts, PART):
            seen += self.peer.say(frames.transfer(number, message[at : at + PART], number, more=True))
        return [frame for frame in seen if frame.name in ("detach", "close")]

    def finish(self, number: int) -> bytes:
        return frames.transfer(number, self._rests[number], number)

    @property
    def held(self) -> int:
        return self.peer.connection.write_pressure.held.held


def reason(replies: list[Seen]) -> tuple[str, str | None, str]:
    """Of the one frame that ends something."""
    [seen] = replies
    error = seen.field(2 if seen.name == "detach" else 0)
    return seen.name, seen.condition, error.value[1]


def consumes(env: Environment, container: str, count: int, credit: int) -> Conversation:
    """It is given what there is, and settles nothing."""
    peer = env.peer(container)
    env.store("q", count)
    peer.say(frames.attach_receiver("q"), frames.flow(1, credit))
    return peer


def given(peer: Conversation) -> int:
    return sum(seen.name == "transfer" for seen in peer.seen)


def serves(env: Environment, container: str = "neighbour") -> None:
    """A message in two frames, which come one by one, is accepted, and another one in one frame."""
    peer = env.peer(container)
    peer.say(frames.attach_sender("q"))
    assert peer.say(frames.transfer(0, WHOLE[:9], more=True)) == []
    replies = peer.say(frames.transfer(0, WHOLE[9:]), frames.transfer(1, WHOLE))
    assert [seen.state for seen in replies if seen.name == "disposition"] == ["accepted"], "both of them in one"


def test_at_its_share_the_link_of_the_largest_message_ends_and_the_others_go_on() -> None:
    env = environment(held_bytes_per_connection=MESSAGE)
    hog = Publisher(env, "hog")
    assert hog.begin(2) == []
    name, condition, words = reason(hog.begin(1))
    assert (name, condition, hog.held) == ("detach", REFUSED, 400)
    assert "limits.held_bytes_per_connection, 1000 octets, is used up" in words
    assert hog.peer.seen[-1].field(0) == 0, "the largest"
    assert hog.begin(1) == []
    assert [seen.state for seen in hog.peer.say(hog.finish(1)) if seen.name == "disposition"] == ["accepted"]
    assert hog.held == 400
    serves(env)


def test_at_the_sum_the_one_that_holds_most_gives_way_and_a_neighbour_is_served() -> None:
    env = environment(held_bytes=8_000)
    small, hog = Publisher(env, "small"), Publisher(env, "hog")
    assert small.begin(1) == []
    endings = [frame for _ in range(12) for frame in hog.begin(2)]
    assert [frame.name for frame in endings] == ["detach"] * 3
    assert "limits.held_bytes, 8000 octets of all peers, is used up" in reason(endings[:1])[2]
    assert env.gateway.held.room >= 0
    assert small.begin(1) == [] and small.held == 800, "the hog gives way"
    serves(env)
    assert env.gateway.faults["too-much-unfinished"] == 4


@pytest.mark.parametrize("end", ["detached", "session", "closed", "aborted", "whole"])
def test_what_is_here_in_part_is_given_back_with_all_that_ends_it(end: str) -> None:
    env = environment(held_bytes=8_000)
    hog = Publisher(env, "hog")
    hog.begin(2)
    assert (hog.held, env.gateway.held.lent > 0) == (800, True)
    hog.peer.say(
        {
            "detached": frames.detach(0),
            "session": frames.end(),
            "closed": frames.close(),
            "aborted": frames.aborted(0),
            "whole": hog.finish(0),
        }[end]
    )
    assert hog.peer.connection.engine.in_part.size == hog.held == 0
    env.gateway.disconnect(hog.peer.connection)
    assert env.gateway.held.lent == 0 and hog.peer.connection.write_pressure.held not in env.gateway.held.accounts


def test_unsettled_deliveries_are_held_back_at_the_share_and_come_when_others_are_settled() -> None:
    env = environment(held_bytes_per_connection=20 * DELIVERY_BYTES)
    peer = consumes(env, "hog", 100, 100)
    first = given(peer)
    assert 15 <= first <= 21, "some octets are unread while they go out"
    peer.say(frames.disposition(0, first - 1, frames.state("accepted"), settled=True))
    assert first < given(peer) <= 2 * first + 1
    serves(env)


def test_unsettled_deliveries_give_way_to_a_message_where_they_take_most() -> None:
    env = environment(held_bytes=20_000)
    peer = consumes(env, "hog", 40, 40)
    assert given(peer) < 20
    other = Publisher(env, "other")
    while not peer.connection.closing:
        assert other.begin(1) == []
    name, condition, words = reason([seen for seen in peer.listen() or peer.seen if seen.name == "close"])
    assert (name, condition) == ("close", REFUSED)
    assert "finish, settle and read what you have" in words
    serves(env)


def tick(env: Environment, times: int) -> None:
    for _ in range(times):
        env.gateway.advance()


def test_who_reads_nothing_for_some_seconds_is_closed_where_that_takes_all_and_who_reads_is_not() -> None:
    env = environment(held_bytes=8_000)
    hog, reader = env.peer("hog"), env.peer("reader")
    hog.connection.write_pressure.in_socket = lambda: 4_000
    pressure = reader.connection.write_pressure
    tick(env, 1)
    for second in range(STUCK_S - 1):
        assert not hog.connection.closing, second
        pressure.in_socket = lambda: 2_000
        assert pressure.room > 0, "it has read, and is given more at once"
        pressure.in_socket = lambda: 4_000
        tick(env, 1)
    assert hog.connection.closing and not reader.connection.closing
    env.gateway.disconnect(hog.connection)
    serves(env)


def test_who_reads_nothing_stays_where_there_is_room() -> None:
    env = environment(held_bytes=80_000)
    hog = env.peer("hog")
    hog.connection.write_pressure.in_socket = lambda: 4_000
    tick(env, 3 * STUCK_S)
    assert not hog.connection.closing


def test_a_message_of_one_transfer_costs_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def counted(kind: type, name: str) -> None:
        real: Callable[..., Any] = getattr(kind, name)

        def noted(*given: Any) -> Any:
            calls.append(name)
            return real(*given)

        monkeypatch.setattr(kind, name, noted)

    env = environment()
    peer = env.peer("publisher")
    peer.say(frames.attach_sender("q"))
    counted(InPart, "add")
    counted(InPart, "take")
    counted(HeldAccount, "hold")
    peer.say(b"".join(frames.transfer(number, WHOLE) for number in range(1_000)))
    assert peer.connection.messages == 1_000
    assert calls == []


def test_a_connection_has_its_floor_though_others_hold_all_the_rest() -> None:
    pool = HeldBytes(8_000, 8_000, 4, MESSAGE)
    first, other = pool.open_account(None), pool.open_account(None)
    first.hold(0, 0, 5_000)
    assert (pool.floor, pool.room, first.room) == (1_000, 0, 0)
    assert other.room == pool.floor
    other.hold(400, 300, 300)
    assert (other.room, pool.lent) == (0, 4_000)
    first.close()
    assert (pool.lent, other.room) == (0, 4_000)


def test_a_connection_has_its_floor_though_a_turn_of_others_took_more_than_the_rest() -> None:
    """What goes out in a turn is counted when it has gone out."""
    pool = HeldBytes(8_000, 8_000, 4, MESSAGE)
    first, other = pool.open_account(None), pool.open_account(None)
    first.hold(0, 7_500, 0)
    assert (pool.room, first.room) == (-2_500, -2_500)
    other.hold(400, 0, 0)
    assert other.room == 600
    other.hold(1_000, 0, 0)
    assert other.room == 0
    other.hold(1_001, 0, 0)
    assert other.room == pool.room == -2_501, "above its floor it gives way like others"


def test_a_neighbour_that_has_less_than_its_floor_is_served_while_others_hold_too_much() -> None:
    env = Environment(TABLES, message_size_bytes=MESSAGE, connections=10, held_bytes=20_000)
    hog, small = consumes(env, "hog", 1, 1), Publisher(env, "small")
    hog.connection.write_pressure.in_socket = lambda: 18_000
    hog.connection.write_pressure.look()
    assert env.gateway.held.room < 0
    assert small.begin(1) == [] and small.held == PART
    assert [seen.state for seen in small.peer.say(small.finish(0)) if seen.name == "disposition"] == ["accepted"]


def test_a_message_of_the_largest_size_has_room_whatever_is_configured() -> None:
    pool = HeldBytes(1, 1, 1_000, MESSAGE)
    account = pool.open_account(None)
    account.hold(MESSAGE, 0, 0)
    assert account.room >= 0


@pytest.mark.parametrize("state", ["expired", "open"])
def test_what_a_transaction_keeps_counts_and_ends_its_connection(state: str) -> None:
    """A publisher that settles second is told, and each delivery stays until the discharge, which need not come."""
    env = environment(held_bytes_per_connection=100 * DELIVERY_BYTES, transaction_timeout_ms=1_000)
    hog = env.peer("hog")
    hog.say(frames.attach_sender(frames.COORDINATOR, 7, "control"), frames.attach_sender("q", rcv=1))
    declared = next(seen for seen in hog.say(frames.declare(0, 7)) if seen.name == "disposition")
    transaction = declared.field(4).value[0]
    if state == "expired":
        assert isinstance(env.gateway.clock, StoppedClock)
        env.gateway.clock.now_s += 2
        hog.connection.tick(env.gateway.clock.now_s)
    posted = [frames.transfer(n, WHOLE, state=frames.in_transaction(transaction)) for n in range(1, 121)]
    hog.say(*posted[:99])
    assert not hog.connection.closing
    name, condition, words = reason([seen for seen in hog.say(*posted[99:]) if seen.name in ("detach", "close")])
    assert (name, condition) == ("close", REFUSED) and "transactions" in words
    assert env.gateway.faults["too-much-held"] == 1
    env.gateway.disconnect(hog.connection)
    assert env.gateway.held.unfinished == 0
    serves(env)


def test_a_transaction_that_ended_without_a_turn_of_its_peer_is_not_taken_for_what_holds_most() -> None:
    """The gateway ended its control link; what was counted for it is looked at before anything else of it ends."""
    env = environment(held_bytes=100 * DELIVERY_BYTES)
    innocent, hog = env.peer("innocent"), Publisher(env, "hog")
    innocent.say(frames.attach_sender(frames.COORDINATOR, 7, "control"), frames.attach_sender("q"))
    declared = next(seen for seen in innocent.say(frames.declare(0, 7)) if seen.name == "disposition")
    posted = frames.in_transaction(declared.field(4).value[0])
    innocent.say(*(frames.transfer(n, WHOLE, state=posted) for n in range(1, 41)))
    control = next(link for link in innocent.connection.engine.links() if link.name == "control")
    innocent.connection.close_link(control, REFUSED, "an operator's wish")
    assert innocent.connection.write_pressure.in_transactions == 0 < innocent.connection.write_pressure.held.unfinished
    endings = [frame for _ in range(40) for frame in hog.begin(2)]
    assert endings == [], "there is room for all of it"
    assert not innocent.connection.closing and env.gateway.faults["too-much-held"] == 0
    assert env.gateway.held.room >= 0
