"""What is said on a control link: declare and discharge, read off the message.

Descriptors may be numeric or symbolic (W-21). What is neither, or is no message at all, is `unreadable`.
Source: AMQP 1.0 part 4 sections 4.5.1, 4.5.2; seed 002. May import: `transformers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from transformers.amqp_types import DecodeError, Described, decode
from transformers.sections import BODY, section_offsets

_DECLARE: Final = (0x31, "amqp:declare:list")
_DISCHARGE: Final = (0x32, "amqp:discharge:list")
_VALUE: Final = (0x77, "amqp:amqp-value:*")
TRANSACTION_ID_BYTES = 32  # W-19


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
    said = body.value if isinstance(body, Described) and body.descriptor in _VALUE else None
    if not isinstance(said, Described) or not isinstance(said.value, list):
        return UNREADABLE
    fields: list[Any] = said.value
    if said.descriptor in _DECLARE:
        return Request("declare", distributed=bool(fields) and fields[0] is not None)
    if said.descriptor not in _DISCHARGE or not fields or not isinstance(fields[0], bytes):
        return UNREADABLE
    return Request("rollback" if fields[1:2] == [True] else "commit", fields[0])
