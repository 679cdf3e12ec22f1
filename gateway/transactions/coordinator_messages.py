"""The messages on a control link, declare and discharge, read from their octets.

Descriptors may be numeric or symbolic (W-21). What is neither, has an invalid field, or is no message at all, is
`unreadable`. Source: AMQP 1.0 part 4 sections 4.5.2, 4.5.3; seed 002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from gateway.frames.field_faults import invalid_field
from gateway.frames.performatives import DECLARE, DISCHARGE
from transformers.codec import DecodeError, Described, decode
from transformers.message.sections import BODY, section_offsets

_DECLARE: Final = (DECLARE.code, DECLARE.symbol)
_DISCHARGE: Final = (DISCHARGE.code, DISCHARGE.symbol)
_VALUE: Final = (0x77, "amqp:amqp-value:*")


@dataclass(frozen=True, slots=True)
class Request:
    """`kind` is a value of the axis `request` of the table `coordinate`."""

    kind: str
    transaction: bytes = b""
    distributed: bool = False  # a declare with a global-id


UNREADABLE = Request("unreadable")


def read_request(message: bytes) -> Request:
    try:
        body, _ = decode(message, section_offsets(message)[BODY])
    except DecodeError:
        return UNREADABLE
    request = body.value if isinstance(body, Described) and body.descriptor in _VALUE else None
    if not isinstance(request, Described) or not isinstance(request.value, list):
        return UNREADABLE
    fields: list[Any] = request.value
    if request.descriptor in _DECLARE and not invalid_field(DECLARE, fields):
        return Request("declare", distributed=bool(fields) and fields[0] is not None)
    if request.descriptor not in _DISCHARGE or invalid_field(DISCHARGE, fields):
        return UNREADABLE
    return Request("rollback" if fields[1:2] == [True] else "commit", fields[0])
