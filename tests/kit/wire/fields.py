"""The fields of AMQP 1.0's performatives and of what stands in them, by position, as the standard's XML has them: its
types resolved to primitive ones. `!`: mandatory; `*`: multiple; `=`: the values that a restricted type has; a type that
is no primitive one is what a composite provides. Written down apart from `gateway.frames.performatives`, which is
compared.

Values of every type to put there: `wrong_values` gives those that a field may not have.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from transformers.codec import (
    AmqpMap,
    Array,
    Byte,
    Char,
    Decimal,
    Described,
    Float,
    Int,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

STANDARD = {
    (0x10, "open"): (
        "container-id string! hostname string max-frame-size uint channel-max ushort idle-time-out uint "
        "outgoing-locales symbol* incoming-locales symbol* offered-capabilities symbol* desired-capabilities symbol* "
        "properties fields"
    ),
    (0x11, "begin"): (
        "remote-channel ushort next-outgoing-id uint! incoming-window uint! outgoing-window uint! handle-max uint "
        "offered-capabilities symbol* desired-capabilities symbol* properties fields"
    ),
    (0x12, "attach"): (
        "name string! handle uint! role boolean! snd-settle-mode ubyte=0,1,2 rcv-settle-mode ubyte=0,1 source source "
        "target target unsettled map incomplete-unsettled boolean initial-delivery-count uint max-message-size ulong "
        "offered-capabilities symbol* desired-capabilities symbol* properties fields"
    ),
    (0x13, "flow"): (
        "next-incoming-id uint incoming-window uint! next-outgoing-id uint! outgoing-window uint! handle uint "
        "delivery-count uint link-credit uint available uint drain boolean echo boolean properties fields"
    ),
    (0x14, "transfer"): (
        "handle uint! delivery-id uint delivery-tag binary message-format uint settled boolean more boolean "
        "rcv-settle-mode ubyte=0,1 state delivery-state resume boolean aborted boolean batchable boolean"
    ),
    (0x15, "disposition"): (
        "role boolean! first uint! last uint settled boolean state delivery-state batchable boolean"
    ),
    (0x16, "detach"): "handle uint! closed boolean error error",
    (0x17, "end"): "error error",
    (0x18, "close"): "error error",
    (0x1D, "error"): "condition symbol! description string info fields",
    (0x23, "received"): "section-number uint! section-offset ulong!",
    (0x24, "accepted"): "",
    (0x25, "rejected"): "error error",
    (0x26, "released"): "",
    (0x27, "modified"): "delivery-failed boolean undeliverable-here boolean message-annotations fields",
    (0x28, "source"): (
        "address string durable uint=0,1,2 expiry-policy symbol=link-detach,session-end,connection-close,never "
        "timeout uint dynamic boolean dynamic-node-properties fields distribution-mode symbol filter map "
        "default-outcome outcome outcomes symbol* capabilities symbol*"
    ),
    (0x29, "target"): (
        "address string durable uint=0,1,2 expiry-policy symbol=link-detach,session-end,connection-close,never "
        "timeout uint dynamic boolean dynamic-node-properties fields capabilities symbol*"
    ),
    (0x30, "coordinator"): "capabilities symbol*",
    (0x33, "declared"): "txn-id binary!",
    (0x34, "transactional-state"): "txn-id binary! outcome outcome",
}

SASL = {
    (0x41, "sasl-init"): "mechanism symbol! initial-response binary hostname string",
    (0x43, "sasl-response"): "response binary!",
}
"""Part 5, 5.3.3: frames before AMQP."""
_VALUES: dict[str, Any] = {
    "boolean": True,
    "ubyte": UByte(1),
    "ushort": UShort(1),
    "uint": UInt(1),
    "ulong": ULong(1),
    "byte": Byte(1),
    "short": Short(1),
    "int": Int(1),
    "long": 1,
    "float": Float(1.0),
    "double": 1.0,
    "decimal": Decimal(b"\0\0\0\1"),
    "char": Char("a"),
    "timestamp": Timestamp(1),
    "uuid": uuid.UUID(int=1),
    "binary": b"a",
    "string": "a",
    "symbol": Symbol("a"),
    "list": [UInt(1)],
    "map": AmqpMap([]),
    "array": Array(0x70, [1]),
    "described": Described(Symbol("example:nothing:list"), []),
}
_STANDING: dict[str, Described] = {
    "source": Described(ULong(0x28), []),
    "target": Described(ULong(0x29), []),
    "delivery-state": Described(ULong(0x23), [UInt(0), ULong(0)]),
    "outcome": Described(ULong(0x24), []),
    "error": Described(ULong(0x1D), [Symbol("a:b")]),
}
# A state or an outcome of another kind is judged where it is used, and so are these.
_JUDGED_LATER = {"disposition": "state", "transactional-state": "outcome", "source": "default-outcome"}


@dataclass(frozen=True)
class Field:
    at: int
    name: str
    type: str
    mandatory: bool
    multiple: bool
    choices: tuple[str, ...]


def fields_of(performative: str) -> list[Field]:
    [words] = [words.split() for (_, name), words in (STANDARD | SASL).items() if name == performative]
    fields = []
    for at, (name, spec) in enumerate(zip(words[::2], words[1::2], strict=True)):
        kind, _, choices = spec.partition("=")
        mandatory, multiple = kind.endswith("!"), kind.endswith("*")
        fields.append(
            Field(at, name, kind.rstrip("!*"), mandatory, multiple, tuple(choices.split(",")) if choices else ())
        )
    return fields


def wrong_values(performative: str, field: Field) -> Iterator[tuple[str, Any]]:
    """One of every other type; null where it may not be; a value that is none of its choices."""
    own = {"fields": "map"}.get(field.type, field.type)
    later = _JUDGED_LATER.get(performative) == field.name
    yield from ((name, value) for name, value in _VALUES.items() if name != own and not (later and name == "described"))
    if own in _STANDING:
        yield "described-map", Described(_STANDING[own].descriptor, AmqpMap([]))
    if not later:
        yield from ((name, value) for name, value in _STANDING.items() if own not in (name, _wider(name)))
    if field.mandatory:
        yield "null", None
    if field.multiple:
        yield "array-of-strings", Array(0xA1, ["a"])
    if field.type == "fields":
        yield "map-of-strings", AmqpMap([("a", 1)])
    if field.choices:
        yield "no-choice", {"ubyte": UByte(9), "uint": UInt(9)}.get(field.type, Symbol("other"))


def _wider(kind: str) -> str:
    """An outcome is a delivery state, too."""
    return "delivery-state" if kind == "outcome" else kind
