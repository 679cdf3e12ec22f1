"""What is wrong with the fields of a decoded frame: a mandatory one is missing, one is of another type than AMQP 1.0
says or has a value that AMQP 1.0 does not define, or there are too many. Such a frame is refused before anything is
done for it.

The smallest scope that is safe is refused: the link of an ATTACH whose name, handle and role can be read; the session
of any other frame of a session, because what the frame says of deliveries and windows is unknown; the connection for
OPEN, BEGIN, END and CLOSE. Source: AMQP 1.0 part 1, 1.4; part 2, 2.7; ADR 0076.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

from gateway.frames.descriptors import framed
from gateway.frames.frames import ATTACH, DETACH, DISPOSITION, FLOW, TRANSFER, Fault, Frame
from gateway.frames.performatives import (
    COMPOSITES,
    PERFORMATIVES,
    PRIMITIVE,
    SASL_INIT,
    SASL_RESPONSE,
    Composite,
    Field,
    providing,
)
from transformers.codec import Array, Byte, Char, Decimal, Described, Float, Int, Short, Symbol, Timestamp, ULong

_OF_SESSION: Final = frozenset((ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH))
_ROLE: Final = 2  # in an ATTACH; with name, handle and role it can be answered
_SENDS: Final = False  # a role
_SHOWN: Final = 40  # characters of a value that the description shows
_SYMBOL_CODES: Final = (0xA3, 0xB3)
_NAMES: Final[dict[type, str]] = {
    **{kind: name for name, kind in PRIMITIVE.items() if name != "fields"},
    **{Byte: "byte", Short: "short", Int: "int", int: "long", Float: "float", float: "double", Char: "char"},
    **{Timestamp: "timestamp", uuid.UUID: "uuid", Decimal: "decimal", list: "list", Array: "array"},
    Described: "described value",
}
_STANDING_IN: Final = {
    kind: providing(kind)
    for kind in {field.type for layout in COMPOSITES.values() for field in layout.fields} - PRIMITIVE.keys() - {"any"}
}
_COORDINATOR: Final = 0x30
# As a source it is known, though nothing comes out of it: table `attach` refuses the link.
_STANDING_IN["source"][_COORDINATOR] = COMPOSITES[_COORDINATOR]
# A state or an outcome that AMQP 1.0 does not define is judged where it is used: by tables `settle` and `fault`.
_JUDGED_LATER: Final = frozenset(
    (("disposition", "state"), ("transactional-state", "outcome"), ("source", "default-outcome"))
)


def checked(frame: Frame) -> Frame | Fault:
    """The frame, where all of its fields are as AMQP 1.0 says. An ATTACH that is refused as a link comes back with the
    reason, and with no more in it than its answer needs."""
    wrong = invalid_field(PERFORMATIVES[frame.code], frame.fields)
    if not wrong:
        return frame
    if frame.code == ATTACH and _is_addressed(frame.fields):
        bare = frame.fields[: _ROLE + 1]
        octets = framed(Described(ULong(ATTACH), list(bare)), b"", frame.channel)
        return Frame(frame.channel, ATTACH, bare, octets, wrong)
    if frame.code in _OF_SESSION:
        return Fault("invalid-field-of-session", wrong, frame.channel)
    return Fault("invalid-field-of-connection", wrong)


def _is_addressed(fields: Sequence[Any]) -> bool:
    """Name, handle and role of the ATTACH can be read."""
    leading = zip(PERFORMATIVES[ATTACH].fields, fields[: _ROLE + 1], strict=False)
    return len(fields) > _ROLE and not any(_problem(field, value) for field, value in leading)


def invalid_field(composite: Composite, fields: Sequence[Any]) -> str:
    """What is wrong with them, in words for the peer; empty: nothing."""
    simple = _SIMPLE[composite.name]
    if len(fields) > len(simple):
        return f"{composite.name} has {len(fields)} fields and not {len(simple)} at most{_source(composite)}"
    for field, value, types in zip(composite.fields, fields, simple, strict=False):
        if type(value) in types:
            continue
        problem = _problem(field, value)
        if problem:
            return f"{composite.name}.{field.name} {problem}{_source(composite)}"
        if field.type in _STANDING_IN:
            wrong = _invalid_inside(composite, field, value)
            if wrong:
                return wrong
    return _missing(composite, fields)


def _missing(composite: Composite, fields: Sequence[Any]) -> str:
    for at in range(len(fields), _LEAST[composite.name]):
        if composite.fields[at].mandatory is True:
            return f"{composite.name}.{composite.fields[at].name} is missing{_source(composite)}"
    if composite.code == ATTACH and fields[_ROLE] is _SENDS:
        at, counts = _COUNT
        if len(fields) <= at or fields[at] is None:
            return f"attach.{counts.name} is missing, and the peer sends{_source(composite)}"
    return ""


def _invalid_inside(composite: Composite, field: Field, value: Any) -> str:
    """What is wrong with what stands in a field."""
    inner = _STANDING_IN[field.type].get(value.descriptor)
    if inner is not None:
        return invalid_field(inner, value.value)
    if (composite.name, field.name) in _JUDGED_LATER:
        return ""
    return f"{composite.name}.{field.name} is no {field.type}{_source(composite)}"


def _source(composite: Composite) -> str:
    return f" (AMQP 1.0, {composite.section})"


def _problem(field: Field, value: Any) -> str:
    """What is wrong with one field, but for what stands in it."""
    kind = PRIMITIVE.get(field.type)
    if value is None:
        return "is missing" if field.mandatory is True else ""
    if kind is None:
        return "" if field.type == "any" or _is_list(value) else f"is of type {_name(value)} and no {field.type}"
    if field.multiple and type(value) is Array:
        return "" if value.code in _SYMBOL_CODES and not value.descriptors else "is an array, but not of symbols"
    if not _is(value, kind):
        return f"is of type {_name(value)}, not {_NAMES[kind]}"
    if field.type == "fields" and not all(type(key) is Symbol for key, _ in value.pairs):
        return "is a map with a key that is no symbol"
    if field.choices and value not in field.choices:
        return f"is {str(value)[:_SHOWN]!r}, not one of {', '.join(map(str, field.choices))}"
    return ""


def _is(value: Any, kind: type) -> bool:
    """Exactly: a symbol is no string, and a boolean no number."""
    return type(value) is kind


def _is_list(value: Any) -> bool:
    return type(value) is Described and type(value.value) is list


def _name(value: Any) -> str:
    return _NAMES.get(type(value), type(value).__name__)


def _simple(field: Field) -> frozenset[type]:
    """The types of which every value will do."""
    kind = PRIMITIVE.get(field.type)
    is_simple = kind is not None and not (field.choices or field.type == "fields")
    return frozenset(
        ({kind} if kind is not None and is_simple else set()) | (set() if field.mandatory is True else {type(None)})
    )


_ALL: Final = (*COMPOSITES.values(), SASL_INIT, SASL_RESPONSE)
_SIMPLE: Final = {layout.name: tuple(map(_simple, layout.fields)) for layout in _ALL}
_LEAST: Final = {
    layout.name: max((at for at, field in enumerate(layout.fields, 1) if field.mandatory is True), default=0)
    for layout in _ALL
}
[_COUNT] = [(at, field) for at, field in enumerate(PERFORMATIVES[ATTACH].fields) if field.mandatory == "sender"]
