"""What is kept of a consumer's error in a dead letter and in the outcome record: so much that a record of the log has
room for it beside the largest message.

Octets. Records: docs/records.md "Outcomes".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Any, Final

from native_backend.state.outcome_detail import OutcomeDetail
from transformers.codec import AmqpMap, Array, DecodeError, Described, decode

CONDITION_BYTES_MAX: Final = 255
DESCRIPTION_BYTES_MAX: Final = 1_024
INFO_BYTES_MAX: Final = 1_024


@dataclass(frozen=True, slots=True)
class KeptDetail:
    """Condition and description are cut at their limits; an info map beyond its limit is left out."""

    condition: str
    description: str
    info: AmqpMap | None

    def document(self) -> dict[str, Any]:
        """For a record: JSON, in which binary is hexadecimal and whatever JSON has no word for is text."""
        info = None if self.info is None else plain(self.info)
        return {"condition": self.condition, "description": self.description or None, "info": info}


@lru_cache(maxsize=64)
def kept_detail(detail: OutcomeDetail) -> KeptDetail:
    """Consumers say the same of many deliveries, mostly."""
    condition = _cut(detail.condition, CONDITION_BYTES_MAX)
    return KeptDetail(condition, _cut(detail.description, DESCRIPTION_BYTES_MAX), _info(detail.info))


def _cut(text: str, size_bytes: int) -> str:
    return text.encode()[:size_bytes].decode(errors="ignore")


def _info(octets: bytes) -> AmqpMap | None:
    if not 0 < len(octets) <= INFO_BYTES_MAX:
        return None
    try:
        info, _ = decode(octets)
    except DecodeError:
        return None
    return info if isinstance(info, AmqpMap) else None


def plain(value: Any) -> Any:
    """An AMQP value as JSON has it: binary is hexadecimal, and whatever JSON has no word for is text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, AmqpMap):
        return {str(key): plain(member) for key, member in value.pairs}
    if isinstance(value, list | Array):
        return [plain(member) for member in (value.items if isinstance(value, Array) else value)]
    if isinstance(value, Described):
        return plain(value.value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 53 else str(int(value))
    return value if isinstance(value, float) and isfinite(value) else str(value)
