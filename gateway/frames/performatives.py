"""What AMQP 1.0 says of its composite types: the fields of every performative by their positions, of what stands in
them (termini, errors, delivery states, outcomes), of the requests to a coordinator, and of SASL's frames from a peer.

This is its only home. `gateway.frames.field_faults` checks decoded frames by it, `gateway.frames._frames` those that
are not decoded, and `gateway.frames.descriptors` has its names for descriptors. Source: AMQP 1.0 part 2, 2.7 and
2.8.14; part 3, 3.4 and 3.5; part 4, 4.5; part 5, 5.3.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from transformers.codec import AmqpMap, Symbol, UByte, UInt, ULong, UShort

# The types of a field: primitive ones; `fields`, a map whose keys are symbols; `any`; what a composite provides.
PRIMITIVE: Final[dict[str, type]] = {
    "boolean": bool,
    "ubyte": UByte,
    "ushort": UShort,
    "uint": UInt,
    "ulong": ULong,
    "binary": bytes,
    "string": str,
    "symbol": Symbol,
    "map": AmqpMap,
    "fields": AmqpMap,
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `mandatory`: null is no value of it; `sender`: in an ATTACH whose peer sends. `multiple`: one value,
    or an array of them. `choices`: its only values."""

    name: str
    type: str
    mandatory: bool | Literal["sender"] = False
    multiple: bool = False
    choices: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Composite:
    """A described list. `section`: where AMQP 1.0 defines it. `provides`: the type of field that it can stand in."""

    name: str
    code: int
    section: str
    fields: tuple[Field, ...]
    provides: tuple[str, ...] = ()

    @property
    def symbol(self) -> str:
        """Its descriptor's name."""
        return f"amqp:{self.name}:list"


def _capabilities(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, "symbol", multiple=True) for name in names)


_ERROR = Field("error", "error")
_HANDLE = Field("handle", "uint", mandatory=True)
_TRANSACTION = Field("txn-id", "binary", mandatory=True)
_OFFERED_AND_PROPERTIES = (
    *_capabilities("offered-capabilities", "desired-capabilities"),
    Field("properties", "fields"),
)
# part 3, 3.5.3 and 3.5.4: the source and the target begin alike
_TERMINUS = (
    Field("address", "string"),
    Field("durable", "uint", choices=(0, 1, 2)),
    Field("expiry-policy", "symbol", choices=("link-detach", "session-end", "connection-close", "never")),
    Field("timeout", "uint"),
    Field("dynamic", "boolean"),
    Field("dynamic-node-properties", "fields"),
)

_OPEN = Composite(
    "open",
    0x10,
    "2.7.1",
    (
        Field("container-id", "string", mandatory=True),
        Field("hostname", "string"),
        Field("max-frame-size", "uint"),
        Field("channel-max", "ushort"),
        Field("idle-time-out", "uint"),
        *_capabilities("outgoing-locales", "incoming-locales"),
        *_OFFERED_AND_PROPERTIES,
    ),
)
_BEGIN = Composite(
    "begin",
    0x11,
    "2.7.2",
    (
        Field("remote-channel", "ushort"),
        Field("next-outgoing-id", "uint", mandatory=True),
        Field("incoming-window", "uint", mandatory=True),
        Field("outgoing-window", "uint", mandatory=True),
        Field("handle-max", "uint"),
        *_OFFERED_AND_PROPERTIES,
    ),
)
_ATTACH = Composite(
    "attach",
    0x12,
    "2.7.3",
    (
        Field("name", "string", mandatory=True),
        _HANDLE,
        Field("role", "boolean", mandatory=True),
        Field("snd-settle-mode", "ubyte", choices=(0, 1, 2)),
        Field("rcv-settle-mode", "ubyte", choices=(0, 1)),
        Field("source", "source"),
        Field("target", "target"),
        Field("unsettled", "map"),
        Field("incomplete-unsettled", "boolean"),
        Field("initial-delivery-count", "uint", mandatory="sender"),
        Field("max-message-size", "ulong"),
        *_OFFERED_AND_PROPERTIES,
    ),
)
_FLOW = Composite(
    "flow",
    0x13,
    "2.7.4",
    (
        Field("next-incoming-id", "uint"),
        Field("incoming-window", "uint", mandatory=True),
        Field("next-outgoing-id", "uint", mandatory=True),
        Field("outgoing-window", "uint", mandatory=True),
        Field("handle", "uint"),
        Field("delivery-count", "uint"),
        Field("link-credit", "uint"),
        Field("available", "uint"),
        Field("drain", "boolean"),
        Field("echo", "boolean"),
        Field("properties", "fields"),
    ),
)
_TRANSFER = Composite(
    "transfer",
    0x14,
    "2.7.5",
    (
        _HANDLE,
        Field("delivery-id", "uint"),  # the first of a delivery has one: `gateway.handles`
        Field("delivery-tag", "binary"),
        Field("message-format", "uint"),
        Field("settled", "boolean"),
        Field("more", "boolean"),
        Field("rcv-settle-mode", "ubyte", choices=(0, 1)),
        Field("state", "delivery-state"),
        Field("resume", "boolean"),
        Field("aborted", "boolean"),
        Field("batchable", "boolean"),
    ),
)
_DISPOSITION = Composite(
    "disposition",
    0x15,
    "2.7.6",
    (
        Field("role", "boolean", mandatory=True),
        Field("first", "uint", mandatory=True),
        Field("last", "uint"),
        Field("settled", "boolean"),
        Field("state", "delivery-state"),
        Field("batchable", "boolean"),
    ),
)
_DETACH = Composite("detach", 0x16, "2.7.7", (_HANDLE, Field("closed", "boolean"), _ERROR))
_END = Composite("end", 0x17, "2.7.8", (_ERROR,))
_CLOSE = Composite("close", 0x18, "2.7.9", (_ERROR,))

_STATE, _OUTCOME = ("delivery-state",), ("delivery-state", "outcome")
_IN_FRAMES = (
    Composite(
        "error",
        0x1D,
        "2.8.14",
        (Field("condition", "symbol", mandatory=True), Field("description", "string"), Field("info", "fields")),
        ("error",),
    ),
    Composite(
        "received",
        0x23,
        "3.4.1",
        (Field("section-number", "uint", mandatory=True), Field("section-offset", "ulong", mandatory=True)),
        _STATE,
    ),
    Composite("accepted", 0x24, "3.4.2", (), _OUTCOME),
    Composite("rejected", 0x25, "3.4.3", (_ERROR,), _OUTCOME),
    Composite("released", 0x26, "3.4.4", (), _OUTCOME),
    Composite(
        "modified",
        0x27,
        "3.4.5",
        (
            Field("delivery-failed", "boolean"),
            Field("undeliverable-here", "boolean"),
            Field("message-annotations", "fields"),
        ),
        _OUTCOME,
    ),
    Composite(
        "source",
        0x28,
        "3.5.3",
        (
            *_TERMINUS,
            Field("distribution-mode", "symbol"),
            Field("filter", "map"),  # its keys and values are judged where they are read: `gateway.filters`
            Field("default-outcome", "outcome"),
            *_capabilities("outcomes", "capabilities"),
        ),
        ("source",),
    ),
    Composite("target", 0x29, "3.5.4", (*_TERMINUS, *_capabilities("capabilities")), ("target",)),
    *(
        Composite(f"delete-on-{what}", code, f"3.5.{code - 0x21}", ())
        for code, what in enumerate(("close", "no-links", "no-messages", "no-links-or-messages"), 0x2B)
    ),
    Composite("coordinator", 0x30, "4.5.1", _capabilities("capabilities"), ("target",)),
    Composite("declared", 0x33, "4.5.5", (_TRANSACTION,), _OUTCOME),
    Composite("transactional-state", 0x34, "4.5.6", (_TRANSACTION, Field("outcome", "outcome")), _STATE),
)
DECLARE: Final = Composite("declare", 0x31, "4.5.2", (Field("global-id", "any"),))
DISCHARGE: Final = Composite("discharge", 0x32, "4.5.3", (_TRANSACTION, Field("fail", "boolean")))

PERFORMATIVES: Final[dict[int, Composite]] = {
    layout.code: layout for layout in (_OPEN, _BEGIN, _ATTACH, _FLOW, _TRANSFER, _DISPOSITION, _DETACH, _END, _CLOSE)
}
COMPOSITES: Final[dict[int, Composite]] = {
    **PERFORMATIVES,
    **{layout.code: layout for layout in (*_IN_FRAMES, DECLARE, DISCHARGE)},
}
SASL_INIT: Final = Composite(
    "sasl-init",
    0x41,
    "5.3.3.2",
    (Field("mechanism", "symbol", mandatory=True), Field("initial-response", "binary"), Field("hostname", "string")),
)
SASL_RESPONSE: Final = Composite("sasl-response", 0x43, "5.3.3.4", (Field("response", "binary", mandatory=True),))


def providing(kind: str) -> dict[int, Composite]:
    """The composites that may stand in a field of that type, by code."""
    return {code: layout for code, layout in COMPOSITES.items() if kind in layout.provides}
