"""What plain frames cost is counted, too: a turn ends with few deliveries that are named, and with few facts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest

from gateway.amqp.engine import Engine
from gateway.amqp.facts import Fact
from gateway.frames.frame_reader import FrameReader
from gateway.frames.frames import DISPOSITION
from gateway.frames.stated_in_transactions import Stated
from gateway.frames.wide_dispositions import NAMED_MAX
from mappings import load_tables
from tests.gateway.frames.frame_cases import ATTACHED, FRAME_MAX, MESSAGE_MAX, opened
from tests.kit.scenarios.environment import Environment
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation
from transformers.codec import decode

EFFORT = 64
GIVEN = 5_000
ACCEPTED = frames.state("accepted")
TABLES = load_tables()
MESSAGE = frames.message()


def walked(tap: FrameReader, stream: bytes) -> Iterator[tuple[bytes, list[object]]]:
    """The octets of each walk, and what came with its pieces."""
    rest: bytes | memoryview = stream
    while rest:
        pieces = [(bytes(data[start:end]), frame) for data, start, end, frame in tap.walk(rest, EFFORT)]
        assert tap.effort <= EFFORT + NAMED_MAX // 16 + 1
        yield b"".join(octets for octets, _ in pieces), [frame for _, frame in pieces]
        rest = tap.unread


def attached() -> FrameReader:
    endpoints = opened()
    tap = FrameReader(FRAME_MAX, MESSAGE_MAX, endpoints)
    list(tap.walk(b"".join(ATTACHED)))
    for session in endpoints.sessions.values():
        session.given = GIVEN
    return tap


def named(octets: bytes) -> list[tuple[int, int]]:
    """First and last of each disposition."""
    ranges = []
    while octets:
        size = int.from_bytes(octets[:4])
        value, _ = decode(octets[8:size])
        assert value.descriptor == DISPOSITION
        ranges.append((int(value.value[1]), int(value.value[2])))
        octets = octets[size:]
    return ranges


def _transfers(env: Environment, peer: Conversation) -> bytes:
    peer.say(*(frames.attach_sender(node, handle, node) for handle, node in enumerate("ab")))
    return b"".join(frames.transfer(number, MESSAGE, number % 2) for number in range(400))


def _outcomes(env: Environment, peer: Conversation) -> bytes:
    env.store("q", 400)
    peer.say(frames.attach_receiver("q", 0), frames.flow(0, 400))
    states = ACCEPTED, frames.state("released")
    return b"".join(frames.disposition(number, number, states[number % 2]) for number in range(400))


def _flows(env: Environment, peer: Conversation) -> bytes:
    peer.say(*(frames.attach_receiver(node, handle, node) for handle, node in enumerate("ab")))
    return b"".join(frames.flow(number % 2, 1 + number) for number in range(400))


STORMS = {"transfers of two links": _transfers, "outcomes that differ": _outcomes, "flows of two links": _flows}


def test_a_disposition_of_many_deliveries_is_read_in_parts() -> None:
    turns = [named(octets) for octets, _ in walked(attached(), frames.disposition(0, GIVEN - 1, ACCEPTED))]
    ranges = [pair for turn in turns for pair in turn]
    assert ranges[0][0] == 0 and ranges[-1][1] == GIVEN - 1
    assert all(before[1] + 1 == after[0] for before, after in pairwise(ranges))
    assert max(last - first + 1 for first, last in ranges) == NAMED_MAX
    assert len(turns) >= GIVEN // (2 * NAMED_MAX), "and in turns"


@pytest.mark.parametrize("cut", [5, 11, 30])
def test_of_one_that_comes_in_two_reads_nothing_is_lost(cut: int) -> None:
    tap, stream = attached(), frames.disposition(0, GIVEN - 1, ACCEPTED) + frames.disposition(7, 7, ACCEPTED)
    turns = [octets for part in (stream[:cut], stream[cut:]) for octets, _ in walked(tap, part)]
    assert sum(last - first + 1 for first, last in named(b"".join(turns))) == GIVEN + 1


def test_outcomes_in_a_transaction_are_all_counted() -> None:
    stream = frames.disposition(0, GIVEN - 1, frames.in_transaction(b"t", ACCEPTED))
    stated = [frame for _, came in walked(attached(), stream) for frame in came if isinstance(frame, Stated)]
    assert sum(count for piece in stated for count in piece.named.values()) == GIVEN


def test_the_same_deliveries_again_and_again_take_a_turn_each() -> None:
    again = frames.disposition(0, NAMED_MAX - 1, None, settled=False)
    turns = list(walked(attached(), again * 20))
    assert len(turns) >= 10 and b"".join(octets for octets, _ in turns) == again * 20


def test_plain_flows_end_a_turn() -> None:
    flow = frames.flow(0, 10)
    turns = [octets for octets, _ in walked(attached(), flow * 1_000)]
    assert max(map(len, turns)) <= 200 * len(flow) and b"".join(turns) == flow * 1_000


@pytest.mark.parametrize("kind", STORMS)
def test_a_turn_leads_to_few_facts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the frames are: each fact is tables, records and a look at the realm."""
    env = Environment(TABLES)
    peer, facts = env.peer("storm"), list[int]()
    take = Engine.take_facts

    def noted(engine: Engine) -> list[Fact]:
        taken = take(engine)
        facts.append(len(taken))
        return taken

    monkeypatch.setattr(Engine, "take_facts", noted)
    storm = STORMS[kind](env, peer)
    facts.clear()
    rest: bytes | memoryview = storm
    while rest:
        peer.connection.receive(rest, EFFORT)
        rest = peer.connection.engine.frame_reader.unread
    assert sum(facts) >= 400, facts
    assert max(facts) <= 2 * EFFORT + 100, facts
