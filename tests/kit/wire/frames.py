"""Frames by hand: what a peer of ours sends and reads in the wire tests, with nothing of proton in it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from transformers.codec import AmqpMap, Array, Described, Symbol, UByte, UInt, ULong, decode, encode

AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
NAMES = {
    OPEN: "open",
    BEGIN: "begin",
    ATTACH: "attach",
    FLOW: "flow",
    TRANSFER: "transfer",
    DISPOSITION: "disposition",
    DETACH: "detach",
    END: "end",
    CLOSE: "close",
}
STATES = {
    "declared": 0x33,
    "transactional": 0x34,
    "received": 0x23,
    "accepted": 0x24,
    "rejected": 0x25,
    "released": 0x26,
    "modified": 0x27,
}


_CONDITIONS = {
    "amqp:": "internal-error not-found unauthorized-access decode-error resource-limit-exceeded not-allowed "
    "invalid-field not-implemented resource-locked precondition-failed resource-deleted illegal-state "
    "frame-size-too-small",
    "amqp:connection:": "forced framing-error redirect",
    "amqp:session:": "window-violation errant-link handle-in-use unattached-handle",
    "amqp:link:": "detach-forced transfer-limit-exceeded message-size-exceeded redirect stolen",
    "amqp:transaction:": "unknown-id rollback timeout",
}
CONDITIONS = frozenset(start + name for start, names in _CONDITIONS.items() for name in names.split())
"""All that AMQP 1.0 defines: 2.8.15 to 2.8.18 and 4.5.8."""


@dataclass(frozen=True)
class Seen:
    """A frame that the gateway sent."""

    channel: int
    name: str
    fields: list[Any]
    payload: bytes

    def field(self, index: int) -> Any:
        return self.fields[index] if index < len(self.fields) else None

    @property
    def condition(self) -> str | None:
        """The error condition of a detach, end or close."""
        error = self.field({"detach": 2, "end": 0, "close": 0}[self.name])
        return str(error.value[0]) if isinstance(error, Described) else None

    @property
    def state(self) -> str | None:
        """The outcome in a disposition, with its condition behind a colon where it has one."""
        state = self.field(4)
        if not isinstance(state, Described):
            return None
        name = next(name for name, code in STATES.items() if code == state.descriptor)
        if name == "transactional":
            inner = state.value[1]
            name, state = f"transactional {next(n for n, c in STATES.items() if c == inner.descriptor)}", inner
            error = state.value[0] if state.value else None
            return f"{name}:{error.value[0]}" if isinstance(error, Described) else name
        error = state.value[0] if name == "rejected" and state.value else None
        return f"{name}:{error.value[0]}" if isinstance(error, Described) else name

    def undefined_condition(self) -> str | None:
        """One that AMQP does not define, where it is the gateway's own: in an end of something, or in its answer to a
        publisher. (A consumer is told its own condition back.)"""
        if self.name in ("detach", "end", "close"):
            condition = self.condition
        elif self.name == "disposition" and self.field(0) is True:
            condition = (self.state or "").partition(":")[2] or None
        else:
            return None
        return None if condition in CONDITIONS else condition

    def comparable(self) -> tuple[Any, ...]:
        """Everything a peer can act on; descriptions are words for people."""
        return (self.name, repr([_without_words(field) for field in self.fields]), self.payload)


def _without_words(value: Any) -> Any:
    if isinstance(value, Described) and value.descriptor == 0x1D:
        return value.value[:1]
    if isinstance(value, Described):
        return (
            value.descriptor,
            [_without_words(item) for item in value.value] if isinstance(value.value, list) else value.value,
        )
    return value


def sasl_frame(code: int, *fields: object) -> bytes:
    body = encode(Described(code, [*fields]))
    return (8 + len(body)).to_bytes(4, "big") + b"\x02\x01\x00\x00" + body


def frame(code: int, fields: list[Any], payload: bytes = b"", channel: int = 0) -> bytes:
    body = encode(Described(ULong(code), fields)) + payload
    return struct.pack(">IBBH", len(body) + 8, 2, 0, channel) + body


def open_(container: str = "peer", sole: int | None = None, frame_size: int | None = None) -> bytes:
    """`sole`: it wants to be its container's only connection, by that enforcement policy; -1 leaves it out."""
    if sole is None:
        return frame(OPEN, [container, "host", *([] if frame_size is None else [UInt(frame_size)])])
    policy = [(Symbol("sole-connection-enforcement-policy"), UInt(sole))] if sole >= 0 else []
    desired = Array(0xA3, [Symbol("sole-connection-for-container")])
    return frame(OPEN, [container, "host", *[None] * 6, desired, AmqpMap(policy)])


def begin(channel: int = 0) -> bytes:
    return frame(BEGIN, [None, UInt(0), UInt(1_000_000), UInt(1_000_000)], channel=channel)


def source(
    address: str | None,
    durable: int = 0,
    mode: str | None = None,
    filters: Any = None,
    default: Any = None,
    dynamic: bool | None = None,
    outcomes: list[str] | None = None,
    capability: str | None = None,
    expiry: str | None = None,
    timeout_s: int | None = None,
    properties: Any = None,
) -> Described:
    """`capability`: several have commas in between."""
    agreed = None if outcomes is None else Array(0xA3, [Symbol(f"amqp:{outcome}:list") for outcome in outcomes])
    expires = [Symbol(expiry) if expiry else None, None if timeout_s is None else UInt(timeout_s)]
    fields = [address, UInt(durable), *expires, dynamic, properties, Symbol(mode) if mode else None, filters, default]
    return Described(ULong(0x28), [*fields, agreed, _capabilities(capability)])


def _capabilities(names: str | None) -> Any:
    symbols = [Symbol(name) for name in names.split(",")] if names else []
    return Array(0xA3, symbols) if len(symbols) > 1 else symbols[0] if symbols else None


def target(
    address: str | None,
    dynamic: bool | None = None,
    capability: str | None = None,
    properties: Any = None,
    expiry: str | None = None,
) -> Described:
    wanted = Symbol(capability) if capability else None
    expires = Symbol(expiry) if expiry else None
    return Described(ULong(0x29), [address, UInt(0), expires, None, dynamic, properties, wanted])


def lifetime(policy: Any) -> AmqpMap:
    """Properties of a dynamic node that ask for a lifetime; `policy` is a descriptor."""
    return AmqpMap([(Symbol("lifetime-policy"), Described(policy, []))])


COORDINATOR = Described(ULong(0x30), [None])


def declare(delivery: int, handle: int = 7, global_id: Any = None, settled: bool = False, channel: int = 0) -> bytes:
    return request(delivery, Described(ULong(0x31), [global_id] if global_id else []), handle, settled, channel)


def discharge(
    delivery: int, txn: bytes, fail: bool = False, handle: int = 7, settled: bool = False, channel: int = 0
) -> bytes:
    return request(delivery, Described(ULong(0x32), [txn, fail]), handle, settled, channel)


def request(delivery: int, body: Any, handle: int = 7, settled: bool = False, channel: int = 0) -> bytes:
    """A message on a control link."""
    return transfer(delivery, encode(Described(ULong(0x77), body)), handle, settled, channel=channel)


def in_transaction(txn: bytes, outcome: Described | None = None) -> Described:
    return Described(ULong(0x34), [txn] if outcome is None else [txn, outcome])


def attach_sender(
    address: Any,
    handle: int = 0,
    name: str = "pub",
    mode: int = 2,
    channel: int = 0,
    rcv: int = 0,
    outcomes: list[str] | None = None,
) -> bytes:
    """The peer publishes to `address` (a string, None or a terminus). mode: 0 unsettled, 1 settled, 2 mixed."""
    to = address if isinstance(address, Described) else target(address)
    fields = [
        name,
        UInt(handle),
        False,
        UByte(mode),
        UByte(rcv),
        source(None, outcomes=outcomes),
        to,
        None,
        None,
        UInt(0),
    ]
    return frame(ATTACH, fields, channel=channel)


def attach_receiver(
    where: Any, handle: int = 1, name: str = "sub", mode: int = 2, rcv: int = 0, channel: int = 0, size_max: int = 0
) -> bytes:
    """The peer consumes from `where` (a string or a source). `size_max`: octets of a message that it takes."""
    origin = where if isinstance(where, Described) else source(where)
    fields = [name, UInt(handle), True, UByte(mode), UByte(rcv), origin, target(None)]
    return frame(ATTACH, [*fields, *([None, None, None, ULong(size_max)] if size_max else [])], channel=channel)


def attach_with_properties(
    address: str, properties: dict[str, Any], handle: int = 1, name: str = "sub", publishes: bool = False, mode: int = 2
) -> bytes:
    """A link with properties; it consumes unless it publishes."""
    source_, target_ = (source(None), target(address)) if publishes else (source(address), target(None))
    pairs = AmqpMap([(Symbol(key), value) for key, value in properties.items()])
    fields = [name, UInt(handle), not publishes, UByte(mode), UByte(0), source_, target_, None, None, UInt(0)]
    return frame(ATTACH, [*fields, None, None, None, pairs])


def attach_without_source(name: str, handle: int = 1, all_containers: bool = False, channel: int = 0) -> bytes:
    """As JMS unsubscribes; `all_containers`: what is meant is no container's own."""
    desired = Array(0xA3, [Symbol("shared"), Symbol("global")]) if all_containers else None
    tail = [None, None, None, None, desired]
    fields = [name, UInt(handle), True, UByte(0), UByte(0), None, target(None), None, *tail]
    return frame(ATTACH, fields, channel=channel)


def flow(
    handle: int,
    credit: int,
    delivery_count: int = 0,
    drain: bool = False,
    properties: Any = None,
    channel: int = 0,
    window: int = 1_000_000,
    echo: bool = False,
) -> bytes:
    tail: list[Any] = [drain, echo, properties] if echo or properties is not None else [drain]
    fields = [
        UInt(0),
        UInt(window),
        UInt(0),
        UInt(1_000_000),
        UInt(handle),
        UInt(delivery_count),
        UInt(credit),
        None,
        *tail,
    ]
    return frame(FLOW, fields, channel=channel)


def session_window(seen: int, size: int, channel: int = 0, echo: bool = False) -> bytes:
    """A flow of the session: so many transfers were seen, and there is room for `size` more."""
    tail = [*[None] * 5, True] if echo else []
    return frame(FLOW, [UInt(seen), UInt(size), UInt(0), UInt(1_000_000), *tail], channel=channel)


def transfer(
    delivery: int,
    payload: bytes,
    handle: int = 0,
    settled: bool = False,
    more: bool = False,
    state: Any = None,
    channel: int = 0,
    tag: bytes | None = None,
    rcv: int | None = None,
) -> bytes:
    fields = [UInt(handle), UInt(delivery), b"%d" % delivery if tag is None else tag, UInt(0), settled, more]
    if state is not None or rcv is not None:
        fields += [None if rcv is None else UByte(rcv), state]
    return frame(TRANSFER, fields, payload, channel)


def aborted(handle: int = 0) -> bytes:
    """The sender gives up the message that it is in the middle of."""
    return frame(TRANSFER, [UInt(handle), None, None, None, None, False, None, None, None, True])


def state(name: str, *fields: Any) -> Described:
    return Described(ULong(STATES[name]), list(fields))


def disposition(
    first: int, last: int, outcome: Described | None, settled: bool = True, channel: int = 0, sender: bool = False
) -> bytes:
    """A receiver's, unless `sender`."""
    return frame(DISPOSITION, [not sender, UInt(first), UInt(last), settled, outcome], channel=channel)


def detach(handle: int, closed: bool = True, channel: int = 0) -> bytes:
    return frame(DETACH, [UInt(handle), closed], channel=channel)


def end(channel: int = 0) -> bytes:
    return frame(END, [], channel=channel)


def close() -> bytes:
    return frame(CLOSE, [])


def message(body: bytes = b"body", header: bytes = b"") -> bytes:
    """A data section, behind an optional header section."""
    return header + encode(Described(ULong(0x75), body))


def annotated(pairs: dict[Any, Any], code: int = 0x72, body: bytes = b"body") -> bytes:
    """A message with annotations: of the message, of the delivery (0x71), or a footer (0x78). Plain strings as keys are
    symbols."""
    keys = AmqpMap([(Symbol(key) if type(key) is str else key, value) for key, value in pairs.items()])
    section = encode(Described(ULong(code), keys))
    return message(body) + section if code == 0x78 else section + message(body)


def message_to(address: str | None, body: bytes = b"body", reply_to: str | None = None) -> bytes:
    """A message that says where it goes."""
    properties = Described(ULong(0x73), [None, None, address, None, reply_to])
    return encode(properties) + message(body)


def header(count: int = 0, first: bool | None = None) -> bytes:
    """A header section with a delivery-count and first-acquirer."""
    return encode(Described(ULong(0x70), [None, None, None, first, UInt(count)]))


def count_and_first(seen: Seen) -> tuple[int, bool]:
    """What the header of a message that was given says: delivery-count and first-acquirer."""
    section, _ = decode(seen.payload)
    fields = [*section.value, *[None] * 5] if section.descriptor == 0x70 else [None] * 5
    return fields[4] or 0, bool(fields[3])


def without_header(message: bytes) -> bytes:
    section, end = decode(message)
    return message[end:] if section.descriptor == 0x70 else message


def read(data: bytes) -> tuple[list[Seen], bytes]:
    """Every whole frame of `data`, and what is left of it."""
    frames, rest = [], 0
    for seen, position in parse(data):
        frames.append(seen)
        rest = position
    return frames, data[rest:]


def parse(data: bytes) -> Iterator[tuple[Seen, int]]:
    """Every whole frame of `data` and where the next one begins. Heartbeats and protocol headers are passed over."""
    position = 0
    while len(data) - position >= 8:
        if data[position : position + 4] == b"AMQP":
            position += 8
            continue
        size, doff, _, channel = struct.unpack_from(">IBBH", data, position)
        if len(data) - position < size:
            return
        start, position = position + doff * 4, position + size
        if start < position:
            value, end_of_performative = decode(data, start)
            yield Seen(channel, NAMES[value.descriptor], value.value, data[end_of_performative:position]), position
