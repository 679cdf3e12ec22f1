"""The frames that `gateway.frames._frames` reads without decoding them. Here it learns which types their fields may
have, as `gateway.frames.performatives` describes them: a primitive type is a bit, and so is what a composite provides.
"""

from __future__ import annotations

from typing import Final

from gateway.frames._frames import cut, describe, dispositions, flowed, know
from gateway.frames.frames import DISPOSITION, FLOW, TRANSFER
from gateway.frames.performatives import COMPOSITES, PRIMITIVE, Composite, Field, providing
from transformers.codec import decode
from transformers.codec.formats import VARIABLE, WIDTHS

__all__ = ["ANY_ID", "cut", "dispositions", "flowed"]

ANY_ID: Final = -1  # for the delivery-id that is next: the session has had none

_PRIMITIVE: Final = ("boolean", "ubyte", "uint", "ulong", "binary")
_PROVIDED: Final = ("delivery-state", "outcome")
_NULL: Final = 1
_BITS: Final = {name: 2 << at for at, name in enumerate((*_PRIMITIVE, *_PROVIDED))}
_KINDS: Final[dict[type, int]] = {type(None): _NULL, **{PRIMITIVE[name]: _BITS[name] for name in _PRIMITIVE}}
_SIZED: Final = 255  # a width: the octet behind the constructor says it


def _know_constructors() -> None:
    for code, width in enumerate(WIDTHS):
        if width > 0 or (width == -1 and code in VARIABLE):
            value, _ = decode(bytes((code, *bytes(max(width - 1, 1)))))
            know(code, width - 1 if width > 0 else _SIZED, _KINDS.get(type(value), 0))


def _describe(composite: Composite) -> None:
    mandatory = [at for at, field in enumerate(composite.fields, 1) if field.mandatory]
    provides = sum(_BITS.get(kind, 0) for kind in composite.provides)
    describe(composite.code, provides, max(mandatory, default=0), tuple(map(_allowed, composite.fields)))


def _allowed(field: Field) -> int:
    """No bit but null's where it is left to the decoder: other types, and those of which not every value will do."""
    told_here = not (field.choices or field.multiple)
    return _BITS.get(field.type, 0) * told_here | (0 if field.mandatory else _NULL)


_know_constructors()
for _code in (TRANSFER, DISPOSITION, FLOW, *providing("delivery-state")):
    _describe(COMPOSITES[_code])
