"""What is published in runs is answered in parts, in any order, and each delivery gets its own outcome once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from gateway.amqp.incoming_link import Incoming
from mappings import load_tables
from native_backend.nodes.answers import Published
from native_backend.nodes.node import Node
from native_backend.nodes.words import PublishAnswer
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation, build_gateway
from tests.kit.wire.scripted_realm import ScriptedRealm

TABLES = load_tables()
MESSAGE = frames.message()
OUTCOMES: dict[PublishAnswer, str] = {
    "stored": "accepted",
    "capacity-reached": "rejected:amqp:resource-limit-exceeded",
}


class Unanswered(ScriptedRealm):
    """It keeps what is published, and a test answers."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[tuple[object, int]] = []

    def publish(self, node: Node, keys: list[bytes], values: list[bytes], owner: object) -> None:
        self.batches.append((owner, len(values)))


def outcomes(peer: Conversation) -> dict[int, list[str | None]]:
    """By delivery-id, what was settled with it."""
    states: dict[int, list[str | None]] = {}
    for seen in peer.seen:
        if seen.name == "disposition":
            first, last = seen.field(1), seen.field(2)
            assert seen.field(3) is True
            for number in range(first, (first if last is None else last) + 1):
                states.setdefault(number, []).append(seen.state)
    return states


@given(st.lists(st.integers(1, 6), min_size=1, max_size=5), st.data())
def test_each_delivery_has_its_own_outcome_once(runs: list[int], data: st.DataObject) -> None:
    realm = Unanswered()
    peer = Conversation(build_gateway(TABLES, realm))
    peer.say(frames.attach_sender("q"))
    for count in runs:
        peer.say(*(frames.transfer(peer.number(), MESSAGE) for _ in range(count)))
    parts: list[tuple[Any, int, int, int, PublishAnswer]] = []
    before = 0
    for owner, count in realm.batches:
        cuts = sorted({0, count, *data.draw(st.lists(st.integers(0, count), max_size=2))})
        for first, end in pairwise(cuts):
            answer = data.draw(st.sampled_from(sorted(OUTCOMES)))
            parts.append((owner, first, end - first, before + first, answer))
        before += count
    assert before == sum(runs)
    link = cast("Incoming", next(iter(peer.connection.engine.links())))
    expected: dict[int, list[str | None]] = {}
    for owner, first, count, number, answer in data.draw(st.one_of(st.just(parts), st.permutations(parts))):
        eids = [1 + number + at if answer == "stored" else -1 for at in range(count)]
        realm.answer("publish", Published(owner, first, eids, answer))
        peer.listen()
        expected |= {number + at: [OUTCOMES[answer]] for at in range(count)}
        assert outcomes(peer) == expected
        assert link.unsettled_count == sum(runs) - len(expected)
        if data.draw(st.booleans()):
            assert len(link.unsettled_seqs) == link.unsettled_count
