"""What the annotations of a message may be called (001 3.2.10), and what is wrong with a message that is none.

A key is a symbol or a ulong. `x-opt...` is free for all and passes; of all other keys only `rejected` of the
delivery-annotations is known, and it holds an error. Sections of one link are mostly alike: a short one that was found
good is not looked at again, and of a long one with free keys and simple values no value is made.

Source: seed 001 sections 3.2.2, 3.2.3, 3.2.10 (B-3, B-5 to B-7); seed 004 2.2.1 (A-9). Errors: `DecodeError`, and
`AnnotationError` for what can be read and may not be.
"""

from __future__ import annotations

from functools import lru_cache

from transformers.codec import AmqpMap, DecodeError, Described, Symbol, ULong, decode
from transformers.message import _sections
from transformers.message.header import header_fields
from transformers.message.sections import Offsets, section_offsets

_ANYBODYS = "x-opt"
_REJECTED = "rejected"
_ERROR = (0x1D, "amqp:error:list")
_REMEMBERED_BYTES = 512
are_free = _sections.free_annotations
"""Of a section: it is right, and all of its keys are anybody's; False: perhaps not."""
MALFORMED, UNKNOWN, INVALID = "message-malformed", "annotation-unknown", "annotation-invalid"


class AnnotationError(DecodeError):
    """`fault` is a value of the axis of the table `fault`."""

    def __init__(self, fault: str, reason: str) -> None:
        super().__init__(0, reason)
        self.fault = fault


def check_annotations(message: bytes, offsets: Offsets) -> None:
    """Raises for keys that may not be."""
    _, delivery, annotations, properties, application, body, footer = offsets
    if annotations >= 0 or delivery >= 0:
        end = properties if properties >= 0 else application if application >= 0 else body
        if annotations >= 0:
            _check(message[annotations:end], False)
        if delivery >= 0:
            _check(message[delivery : annotations if annotations >= 0 else end], True)
    if footer >= 0:
        _check(message[footer:], False)


def fault_of(message: bytes) -> tuple[str, str] | None:
    """The fault in a message that is no event, and words for it. None: there is none."""
    if not message:
        return None
    try:
        offsets = section_offsets(message)
        check_annotations(message, offsets)
        header_fields(message, offsets)
    except AnnotationError as error:
        return error.fault, error.reason
    except DecodeError as error:
        return MALFORMED, str(error)
    return None


def _check(section: bytes, of_delivery: bool) -> None:
    if len(section) <= _REMEMBERED_BYTES:
        _remembered(section, of_delivery)
    elif not are_free(section):
        _look(section, of_delivery)


def _look(section: bytes, of_delivery: bool) -> None:
    annotations, end = decode(section)
    if not isinstance(annotations, Described) or not isinstance(annotations.value, AmqpMap) or end != len(section):
        raise DecodeError(0, "annotations are a map")
    for key, value in annotations.value.pairs:
        if not isinstance(key, Symbol | ULong):
            raise DecodeError(0, f"an annotation called by a {type(key).__name__}")
        if isinstance(key, Symbol) and key.startswith(_ANYBODYS):
            continue
        if not of_delivery or key != _REJECTED:
            raise AnnotationError(UNKNOWN, f"the annotation {str(key)[:60]!r} is not known here")
        if not isinstance(value, Described) or value.descriptor not in _ERROR:
            raise AnnotationError(INVALID, "the annotation 'rejected' holds an error")


@lru_cache(maxsize=4096)
def _remembered(section: bytes, of_delivery: bool) -> None:
    _look(section, of_delivery)
