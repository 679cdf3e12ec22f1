"""Scenarios of table `fault`: a peer makes one fault, and has another session, which shows how far the fault goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mappings import TableSet
from tests.kit.realm.stopped_clock import StoppedClock
from tests.kit.scenarios.environment import MESSAGE, Environment, Facts
from tests.kit.wire import frames
from tests.kit.wire.conversation import Conversation
from transformers.codec import AmqpMap, Described, Symbol, UInt, ULong


def run_fault(facts: Facts, tables: TableSet) -> list[Any]:
    env = Environment(tables, **LIMITS.get(facts["fault"], {}))
    env.store("q", 2)
    peer = env.peer("peer")
    peer.say(frames.begin(channel=1), frames.attach_sender("q", name="bystander", channel=1))
    FAULTS[facts["fault"]](env, peer)
    peer.say(frames.transfer(0, MESSAGE, channel=1))
    return env.show()


def _framing(_: Environment, peer: Conversation) -> None:
    peer.say(b"\x00\x00\x00\x07\x02\x00\x00\x00")


def _unknown_performative(_: Environment, peer: Conversation) -> None:
    peer.say(frames.frame(0x77, []))


def _malformed_performative(_: Environment, peer: Conversation) -> None:
    peer.say(b"\x00\x00\x00\x0e\x02\x00\x00\x00\x00\x53\x12\xc0\x20\x05")


def _invalid_field_of_link(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_sender(frames.target(5)))  # type: ignore[arg-type]


def _invalid_field_of_session(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_receiver("q"), frames.flow(1, 5))
    peer.say(frames.frame(frames.DISPOSITION, [True, None, None, True, frames.state("accepted")]))


def _invalid_field_of_connection(_: Environment, peer: Conversation) -> None:
    peer.say(frames.frame(frames.BEGIN, [], channel=2))


def _delivery_id_out_of_order(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_sender("q"))
    peer.say(frames.transfer(0, MESSAGE), frames.transfer(2, MESSAGE))


def _disposition_out_of_range(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_receiver("q"), frames.flow(1, 5))
    peer.say(frames.disposition(0, 2, frames.state("accepted")))


def _out_of_order(_: Environment, peer: Conversation) -> None:
    peer.say(frames.open_("peer"))


def _over_credit(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_sender("q"))
    peer.say(*(frames.transfer(number, MESSAGE) for number in range(5)))


def _message_too_large(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_sender("q"))
    peer.say(frames.transfer(0, frames.message(b"x" * 500)))


def _unattached_handle(_: Environment, peer: Conversation) -> None:
    peer.say(frames.transfer(0, MESSAGE, handle=9))


def _errant_link(env: Environment, peer: Conversation) -> None:
    _message_too_large(env, peer)
    peer.say(*(frames.transfer(number, MESSAGE) for number in range(1, 30)))


def _handle_in_use(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_sender("q"), frames.attach_sender("q", name="another"))


def _conflicting_outcome(env: Environment, peer: Conversation) -> None:
    env.realm.holds.add("settle")
    peer.say(frames.attach_receiver("q"), frames.flow(1, 5))
    peer.say(frames.disposition(0, 0, frames.state("accepted"), settled=False))
    peer.say(frames.disposition(0, 0, frames.state("rejected"), settled=False))
    env.realm.release()


def _outcome_not_agreed(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_receiver(frames.source("q", outcomes=["accepted"])), frames.flow(1, 5))
    peer.say(frames.disposition(0, 0, frames.state("rejected")))


def _transactional_acquisition(_: Environment, peer: Conversation) -> None:
    properties = AmqpMap([(Symbol("txn-id"), b"txn")])
    peer.say(frames.attach_receiver("q"), frames.flow(1, 5, properties=properties))


def _link_name_in_use(env: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_sender("q", name="mine"))
    env.peer("peer").say(frames.attach_sender("q", name="mine"))
    peer.listen()


def _sole(env: Environment, policy: int) -> None:
    newcomer = Conversation(env.gateway, begin=False)
    env.peers.append(newcomer)
    newcomer.say(frames.AMQP_HEADER, frames.open_("sole", policy), frames.begin(), frames.attach_sender("q"))


def _container_in_use(env: Environment, _: Conversation) -> None:
    _sole(env, 0)
    _sole(env, 0)


def _container_taken_over(env: Environment, _: Conversation) -> None:
    _sole(env, 0)
    _sole(env, 1)


def _too_many_links(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_sender("q"), frames.attach_sender("q", handle=5, name="one too many"))


def _too_many_nodes(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_sender(frames.target(None, dynamic=True)))


def _too_many_durables(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_receiver(frames.source("c", durable=2, expiry="never")))


def _too_many_stores(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_receiver(frames.source("q")))


def _too_many_containers(_: Environment, peer: Conversation) -> None:
    no_local = AmqpMap([(Symbol("no-local"), Described(ULong(0x468C00000003), []))])
    peer.say(frames.attach_receiver(frames.source("c", filters=no_local)))


def _in_parts(peer: Conversation, size: int) -> None:
    """Two requests to the coordinator, of which the end does not come. At a node some profiles take no message in
    several frames at all."""
    for number in range(2):
        peer.say(frames.attach_sender(frames.COORDINATOR, handle=number, name=f"link {number}"))
        peer.say(frames.transfer(number, MESSAGE.ljust(size), number, more=True))


def _too_much_unfinished(_: Environment, peer: Conversation) -> None:
    _in_parts(peer, 600)


def _too_much_held(env: Environment, peer: Conversation) -> None:
    """It settles nothing of what it is given, and another connection has requests in several frames."""
    env.store("q", 12)
    peer.say(frames.attach_receiver("q"), frames.flow(1, 12))
    _in_parts(env.peer("other"), 900)


def _invalid_terminus(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_sender(frames.target("q", dynamic=True)))


def _idle(env: Environment, peer: Conversation) -> None:
    clock = env.gateway.clock
    assert isinstance(clock, StoppedClock)
    for _ in range(3):
        clock.now_s += 0.6
        peer.connection.tick(clock.monotonic_s())


def _idle_time_out_not_kept(env: Environment, _: Conversation) -> None:
    env.peers.append(hasty := Conversation(env.gateway, begin=False))
    hasty.say(frames.AMQP_HEADER, frames.frame(frames.OPEN, ["hasty", "host", None, None, UInt(99)]))


def _outcome_unknown(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_receiver(frames.source("q", outcomes=["foo"])), frames.flow(1, 5))


def _delivery_mode_forced(_: Environment, peer: Conversation) -> None:
    peer.say(frames.attach_with_properties("q", {"delivery-mode": "exactly-once"}), frames.flow(1, 5))


def _session_in_use(_: Environment, peer: Conversation) -> None:
    peer.say(frames.begin())


def _sent(transfer: bytes) -> Callable[[Environment, Conversation], None]:
    def scenario(_: Environment, peer: Conversation) -> None:
        peer.say(frames.attach_sender("q"))
        peer.say(transfer)

    return scenario


def _answer_too_large(env: Environment, _: Conversation) -> None:
    env.peers.append(small := Conversation(env.gateway, begin=False))
    small.say(frames.AMQP_HEADER, frames.open_("small", frame_size=512), frames.begin())
    small.say(frames.attach_sender("q" * 450))


def _too_many_connections(env: Environment, _: Conversation) -> None:
    env.peers.append(another := Conversation(env.gateway, begin=False))
    another.say(frames.AMQP_HEADER, frames.open_("another"))


LIMITS: dict[str, dict[str, int]] = {
    "too-many-connections": {"connections": 1},
    "over-credit": {"credit_per_link": 2},
    "message-too-large": {"message_size_bytes": 100},
    "errant-link": {"message_size_bytes": 100, "credit_per_link": 5},
    "too-many-links": {"links": 1},
    "too-many-nodes": {"temporary_nodes": 0},
    "too-many-durables": {"durables": 0},
    "too-many-stores": {"stores_read": 0},
    "too-many-containers": {"no_local_containers": 0},
    "too-much-unfinished": {"message_size_bytes": 1_000, "held_bytes_per_connection": 1_000},
    "too-much-held": {"message_size_bytes": 1_000, "held_bytes": 20_000, "connections": 1_000},
    "idle": {"idle_timeout_ms": 1000},
}
FAULTS: dict[str, Callable[[Environment, Conversation], None]] = {
    "framing": _framing,
    "unknown-performative": _unknown_performative,
    "malformed-performative": _malformed_performative,
    "invalid-field-of-link": _invalid_field_of_link,
    "invalid-field-of-session": _invalid_field_of_session,
    "invalid-field-of-connection": _invalid_field_of_connection,
    "delivery-id-out-of-order": _delivery_id_out_of_order,
    "disposition-out-of-range": _disposition_out_of_range,
    "out-of-order": _out_of_order,
    "over-credit": _over_credit,
    "message-too-large": _message_too_large,
    "unattached-handle": _unattached_handle,
    "errant-link": _errant_link,
    "handle-in-use": _handle_in_use,
    "conflicting-outcome": _conflicting_outcome,
    "outcome-not-agreed": _outcome_not_agreed,
    "transactional-acquisition": _transactional_acquisition,
    "link-name-in-use": _link_name_in_use,
    "container-in-use": _container_in_use,
    "container-taken-over": _container_taken_over,
    "too-many-links": _too_many_links,
    "too-many-nodes": _too_many_nodes,
    "too-many-durables": _too_many_durables,
    "too-many-stores": _too_many_stores,
    "too-many-containers": _too_many_containers,
    "too-many-connections": _too_many_connections,
    "too-much-unfinished": _too_much_unfinished,
    "too-much-held": _too_much_held,
    "invalid-terminus": _invalid_terminus,
    "idle": _idle,
    "idle-time-out-not-kept": _idle_time_out_not_kept,
    "message-malformed": _sent(frames.transfer(0, b"garbage")),
    "annotation-unknown": _sent(frames.transfer(0, frames.annotated({"foo": 1}))),
    "annotation-invalid": _sent(frames.transfer(0, frames.annotated({"rejected": 5}, 0x71))),
    "outcome-unknown": _outcome_unknown,
    "delivery-mode-forced": _delivery_mode_forced,
    "session-in-use": _session_in_use,
    "delivery-tag-too-long": _sent(frames.transfer(0, MESSAGE, tag=b"t" * 33)),
    "settle-mode-not-agreed": _sent(frames.transfer(0, MESSAGE, rcv=1)),
    "transfer-contradicts": _sent(
        frames.transfer(0, MESSAGE[:9], more=True) + frames.transfer(0, MESSAGE[9:], tag=b"other")
    ),
    "answer-too-large": _answer_too_large,
}
