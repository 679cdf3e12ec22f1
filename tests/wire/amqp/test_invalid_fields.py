"""Every field of every performative that is missing or of a wrong type: the frame is refused, with the smallest scope
that is safe, and what it is about stays as it was: no delivery is settled, nothing is stored, other sessions and
connections go on.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.frames.performatives import COMPOSITES
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.fields import STANDARD, Field, fields_of, wrong_values
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from transformers.codec import Described, Symbol, UInt, ULong, UShort

MESSAGE = frames.message()
ACCEPTED = frames.state("accepted")
INVALID, DECODE = "amqp:invalid-field", "amqp:decode-error"
CODES = {name: code for code, name in STANDARD}
CONSUMES, PUBLISHES = 0, 1  # handles on the session that is to end
GIVEN = 3  # deliveries that the peer has there, unsettled

# A lawful frame of each, on that session; its fields are replaced one by one. An END and a CLOSE need no field.
SOURCE, TARGET = frames.source("any.n"), frames.target("any.n")
LAWFUL: dict[str, list[Any]] = {
    "open": ["peer"],
    "begin": [None, UInt(0), UInt(10), UInt(10)],
    "attach": ["new", UInt(5), False, None, None, frames.source(None), TARGET, None, None, UInt(0)],
    "flow": [UInt(0), UInt(99), UInt(0), UInt(99), UInt(CONSUMES), UInt(0), UInt(9), UInt(0), False, False],
    "transfer": [UInt(PUBLISHES), UInt(0), b"t", UInt(0), False, False],
    "disposition": [True, UInt(0), UInt(GIVEN - 1), True, ACCEPTED],
    "detach": [UInt(CONSUMES), True],
    "end": [],
    "close": [],
}
INSIDE: dict[
    str, tuple[str, int, list[Any]]
] = {  # what stands in their fields: the performative, the place, and the lawful fields
    "error": ("detach", 2, [Symbol("a:b")]),
    "received": ("disposition", 4, [UInt(0), ULong(0)]),
    "rejected": ("disposition", 4, []),
    "modified": ("disposition", 4, []),
    "declared": ("disposition", 4, [b"t"]),
    "transactional-state": ("disposition", 4, [b"t", ACCEPTED]),
    "source": ("attach", 5, ["any.n"]),
    "target": ("attach", 6, ["any.n"]),
    "coordinator": ("attach", 6, []),
}


def with_field(performative: str, at: int, value: Any) -> bytes:
    """That frame with another value in one field."""
    code, channel = (
        CODES[performative],
        2 if performative == "begin" else 1 if performative not in ("open", "close") else 0,
    )
    fields = [*LAWFUL[performative], *[None] * (at + 1)][: max(at + 1, len(LAWFUL[performative]))]
    fields[at] = value
    if performative == "attach" and at == 5 and value is not None:
        fields[2] = True  # it is our source then
    return frames.frame(code, fields, MESSAGE if performative == "transfer" else b"", channel)


def with_inner_field(name: str, at: int, value: Any) -> bytes:
    performative, place, fields = INSIDE[name]
    inner = [*fields, *[None] * (at + 1)][: max(at + 1, len(fields))]
    inner[at] = value
    return with_field(performative, place, Described(ULong(CODES[name]), inner))


def short_of(performative: str, at: int) -> bytes:
    """That frame without its last fields."""
    channel = {"open": 0, "begin": 2}.get(performative, 1)
    return frames.frame(CODES[performative], LAWFUL[performative][:at], channel=channel)


def bad_frames(name: str, field: Field) -> Iterator[tuple[str, bytes]]:
    put: Callable[[str, int, Any], bytes] = with_inner_field if name in INSIDE else with_field
    yield from ((what, put(name, field.at, value)) for what, value in wrong_values(name, field))
    if field.mandatory and name not in INSIDE:
        yield "left-out", short_of(name, field.at)


def test_the_description_is_the_standards() -> None:
    """The table that the gateway checks by, and the one that is tested by."""
    composites = {
        (code, spec.name): spec.fields for code, spec in COMPOSITES.items() if spec.fields or code in range(0x24, 0x27)
    }
    for (code, name), words in STANDARD.items():
        described = composites[code, name]
        standard = fields_of(name)
        assert [field.name for field in described] == [field.name for field in standard], words
        for ours, field in zip(described, standard, strict=True):
            shape = (ours.type, ours.mandatory is True, ours.multiple, tuple(map(str, ours.choices)))
            assert shape == (field.type, field.mandatory, field.multiple, field.choices), (name, field.name)
    assert not {name for _, name in composites} - {name for _, name in STANDARD} - {"declare", "discharge"}


class Victim:
    """A connection with two sessions: on one the peer consumes and publishes and is about to err, on the other it
    publishes before and after."""

    def __init__(self, gateway: GatewayProcess, node: str) -> None:
        self.port, self.node, self.sink = gateway.port, f"{node}.from", f"{node}.to"
        self.peer = Peer(gateway.port)
        self.peer.stored(self.node, *(frames.message(b"%d" % at) for at in range(GIVEN)))
        self.peer.publisher(f"{node}.other", handle=7)
        self._begun = False

    def begin(self) -> None:
        """Its session on channel 1, where it was ended: with three deliveries to settle and a link to publish on."""
        if self._begun:
            return
        source, target = frames.source(self.node), frames.target(self.sink, capability="queue")
        opening = [
            frames.begin(1),
            frames.attach_receiver(source, CONSUMES, "from", channel=1),
            frames.flow(CONSUMES, GIVEN, channel=1),
            frames.attach_sender(target, PUBLISHES, "to", channel=1),
        ]
        self.peer.send(*opening)
        seen = self._until(lambda: self._names().count("transfer") == GIVEN and self._has_credit())
        assert [frame.name for frame in seen if frame.name not in ("flow", "transfer")] == [
            "begin",
            "attach",
            "attach",
        ], seen
        self._begun = True

    def _names(self) -> list[str]:
        return [seen.name for seen in self.peer.seen]

    def _has_credit(self) -> bool:
        return any(seen.name == "flow" and seen.field(6) for seen in self.peer.seen)

    def _until(self, reached: Callable[[], bool]) -> list[Seen]:
        while not reached():
            assert self.peer.read(20.0), (self.peer.seen, self.peer.eof)
        seen, self.peer.seen = self.peer.seen, []
        return seen

    def ended_by(self, bad: bytes) -> Seen:
        """The END that is all that it is answered with, and that what comes behind it in the same octets is, too."""
        behind = [
            frames.disposition(0, GIVEN - 1, ACCEPTED, channel=1),
            frames.transfer(0, MESSAGE, PUBLISHES, channel=1),
            frames.flow(CONSUMES, 50, channel=1),
        ]
        self.peer.send(bad, *behind)
        seen = self._until(lambda: bool(self.peer.seen))
        assert [frame.name for frame in seen] == ["end"], seen
        assert seen[0].channel == 1
        self.peer.send(*behind, frames.end(1))
        self._begun = False
        return seen[0]

    def refused_by(self, bad: bytes) -> Seen:
        """The DETACH that refuses a link; its session goes on."""
        self.peer.send(bad, frames.detach(5, channel=1))
        attached, detached = self._until(lambda: len(self.peer.seen) >= 2)
        assert (attached.name, detached.name, attached.channel, detached.channel) == ("attach", "detach", 1, 1)
        assert attached.field(5) is attached.field(6) is None, attached
        assert detached.field(1) is True
        return detached

    def is_well(self) -> None:
        """What its session had is there for another, uncounted and in order, nothing was published, and the other
        session is as it was."""
        self.peer.publish(MESSAGE, handle=7)
        assert set(self.peer.outcomes(1).values()) == {"accepted"}
        if self._begun:
            self.peer.send(frames.end(1))
            seen = self._until(lambda: "end" in self._names())
            assert seen[-1].condition is None
        self.peer.close()
        with Peer(self.port) as other:
            other.consumer(self.sink, credit=5, handle=2, name="sink")
            other.consumer(self.node, credit=5)
            deliveries = other.receive(GIVEN)
            other.nothing()
            assert [frames.without_header(seen.payload) for seen in deliveries] == [
                frames.message(b"%d" % at) for at in range(GIVEN)
            ]
            assert {frames.count_and_first(seen)[0] for seen in deliveries} == {0}


@pytest.fixture
def victim(gateway: GatewayProcess, node: str) -> Iterator[Victim]:
    made = Victim(gateway, node)
    yield made
    made.is_well()


def places(*names: str) -> list[Any]:
    return [pytest.param(name, field, id=f"{name}.{field.name}") for name in names for field in fields_of(name)]


OF_SESSION = ("flow", "transfer", "disposition", "detach", "error", "received", "rejected", "modified", "declared")


@pytest.mark.requirement("P-1", "P-4")
@pytest.mark.parametrize(("name", "field"), places(*OF_SESSION, "transactional-state"))
def test_an_invalid_field_ends_its_session_and_changes_nothing(victim: Victim, name: str, field: Field) -> None:
    for what, bad in bad_frames(name, field):
        victim.begin()
        ended = victim.ended_by(bad)
        assert ended.condition == INVALID, (what, ended)
        assert field.name in ended.fields[0].value[1], (what, ended)


@pytest.mark.requirement("P-1", "P-4", "O-1")
@pytest.mark.parametrize(("name", "field"), places("attach", "source", "target", "coordinator"))
def test_an_invalid_field_of_an_attach_refuses_its_link(victim: Victim, name: str, field: Field) -> None:
    """Without a name, a handle or a role the refusal cannot be said: then the session ends."""
    for what, bad in bad_frames(name, field):
        victim.begin()
        addressed = name != "attach" or field.at > 2
        refusal = victim.refused_by(bad) if addressed else victim.ended_by(bad)
        assert refusal.condition == INVALID, (what, refusal)


@pytest.mark.requirement("P-1", "P-2")
@pytest.mark.parametrize(("name", "field"), places("open", "begin", "end", "close"))
def test_an_invalid_field_of_a_frame_of_no_session_closes_the_connection(
    gateway: GatewayProcess, victim: Victim, name: str, field: Field
) -> None:
    for what, bad in bad_frames(name, field):
        with Peer(gateway.port, begin=False) as peer:
            opened = [] if name == "open" else [frames.open_(), frames.begin(1)]
            peer.send(frames.AMQP_HEADER, *opened, bad)
            peer.expect("open")
            if opened:
                peer.expect("begin")
            assert peer.expect("close").condition == INVALID, what
            peer.send(frames.close())
            assert peer.closed()


CONDITIONAL = {
    "begin-with-a-remote-channel": (frames.frame(frames.BEGIN, [UShort(0), *LAWFUL["begin"][1:]], channel=2), "close"),
    "sender-without-a-count": (frames.frame(frames.ATTACH, LAWFUL["attach"][:7], channel=1), "detach"),
    "first-transfer-without-an-id": (with_field("transfer", 1, None), "end"),
    **{
        f"too-many-fields-{name}": (with_field(name, len(fields_of(name)), None), scope)
        for name, scope in (
            ("attach", "detach"), ("flow", "end"), ("transfer", "end"), ("disposition", "end"), ("detach", "end"),
            ("begin", "close"), ("end", "close"), ("close", "close"),
        )
    },
    "accepted-with-a-field": (with_field("disposition", 4, frames.state("accepted", None)), "end"),
    "gap-in-the-delivery-ids": (
        frames.transfer(0, MESSAGE, PUBLISHES, more=True, channel=1) + frames.aborted(PUBLISHES)[:6] + b"\0\1"
        + frames.aborted(PUBLISHES)[8:] + frames.transfer(2, MESSAGE, PUBLISHES, channel=1), "end",
    ),
    "disposition-backwards": (frames.disposition(1, 0, ACCEPTED, channel=1), "end"),
    "disposition-ahead": (frames.disposition(GIVEN, GIVEN, ACCEPTED, channel=1), "end"),
    "disposition-beyond": (frames.disposition(0, GIVEN, ACCEPTED, channel=1), "end"),
    "disposition-far-beyond": (frames.disposition(0, 2**32 - 1, ACCEPTED, channel=1), "end"),
    "disposition-from-before": (frames.disposition(2**32 - 1, 0, ACCEPTED, channel=1), "end"),
    "disposition-of-what-was-never-published": (frames.disposition(0, 0, ACCEPTED, sender=True, channel=1), "end"),
}  # fmt: skip


@pytest.mark.requirement("P-1", "P-4")
@pytest.mark.parametrize("case", CONDITIONAL)
def test_what_must_be_there_or_agree_with_what_was_sent(gateway: GatewayProcess, victim: Victim, case: str) -> None:
    bad, scope = CONDITIONAL[case]
    victim.begin()
    if scope == "end":
        assert victim.ended_by(bad).condition == INVALID
    elif scope == "detach":
        assert victim.refused_by(bad).condition == INVALID
    else:
        with Peer(gateway.port, begin=False) as peer:
            opened = [] if bad[10] == frames.OPEN else [frames.open_(), frames.begin(1)]
            peer.send(frames.AMQP_HEADER, *opened, bad)
            seen = peer.frames(len(opened) + 1 if opened else 2)
            assert seen[-1].condition == INVALID, seen


@pytest.mark.requirement("P-1", "P-4")
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_the_first_transfer_of_a_delivery_has_a_tag(
    gateway: GatewayProcess, node: str, parts: int, settled: bool
) -> None:
    """Its link ends, nothing of it is stored, and the session counts on."""
    first = [UInt(0), UInt(0), None, UInt(0), settled]
    with Peer(gateway.port) as peer:
        peer.publisher(node)
        peer.publisher(node, handle=1)
        whole = frames.frame(frames.TRANSFER, [*first, parts > 1], MESSAGE)
        later = [[UInt(0), None, None, None, None, at < parts - 1] for at in range(1, parts)]
        peer.send(whole, *(frames.frame(frames.TRANSFER, fields, MESSAGE) for fields in later))
        assert peer.detached(0) == INVALID
        peer.send(frames.transfer(1, MESSAGE, 1))
        assert peer.outcomes(1) == {1: "accepted"}
        assert len(peer.there(node, 1)) == 1


NO_VALUE = b"\x56\x02"  # a boolean that is neither true nor false


@pytest.mark.requirement("P-2")
@pytest.mark.parametrize("performative", [*range(0x10, 0x19)])
def test_a_field_that_cannot_be_decoded_closes_the_connection(
    gateway: GatewayProcess, victim: Victim, performative: int
) -> None:
    body = b"\0\x53" + bytes((performative, 0xC0, len(NO_VALUE) + 1, 1)) + NO_VALUE
    with Peer(gateway.port, begin=False) as peer:
        opened = [frames.open_(), frames.begin()] if performative != frames.OPEN else []
        peer.send(frames.AMQP_HEADER, *opened, struct.pack(">IBBH", len(body) + 8, 2, 0, 0) + body)
        seen = peer.frames(len(opened) + 1 if opened else 2)
        assert seen[-1].condition == DECODE


HIDDEN = {
    "begin": (frames.begin(1), "amqp:illegal-state"),
    "detach": (frames.detach(9, channel=1), "amqp:session:unattached-handle"),
    "transfer": (with_field("transfer", 4, UInt(1)), INVALID),
    "disposition": (with_field("disposition", 1, None), INVALID),
    "flow": (with_field("flow", 4, "a"), INVALID),
}


@pytest.mark.requirement("P-1", "P-4")
@pytest.mark.parametrize("doff", [3, 4, 5, 6])
@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_has_an_extended_header_is_checked_alike(victim: Victim, hidden: str, doff: int) -> None:
    """The header is its peer's to write: here it looks like a posted transfer, and something else is in the frame."""
    frame, condition = HIDDEN[hidden]
    posted = frames.transfer(0, MESSAGE, PUBLISHES, state=frames.in_transaction(b"t"), channel=1)
    header = struct.pack(">IBBH", len(frame) + 4 * doff - 8, doff, 0, 1) + posted[8 : 4 * doff]
    victim.begin()
    assert victim.ended_by(header + frame[8:]).condition == condition


UNKNOWN = {
    "number": Described(ULong(0x77), []),
    "symbol": Described(Symbol("example:unheard-of:list"), []),
    "large-number": Described(ULong(2**63), [UInt(1)]),
    "symbol-with-fields": Described(Symbol("example:unheard-of:list"), [UInt(1)]),
    "a-terminus": Described(ULong(0x28), []),
    "a-terminus-by-name": Described(Symbol("amqp:source:list"), []),
}


@pytest.mark.requirement("I-7", "P-1")
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("state", UNKNOWN)
def test_a_state_that_is_not_known_ends_the_link_however_it_is_named(
    gateway: GatewayProcess, node: str, state: str, settled: bool
) -> None:
    with Peer(gateway.port) as peer:
        peer.stored(node, MESSAGE)
        peer.consumer(node, credit=1)
        peer.receive(1)
        peer.settle([0], UNKNOWN[state], settled)
        assert peer.detached(1) == "amqp:not-implemented"
        assert len(peer.there(node, 1)) == 1, "it is kept"
