"""What a link selects of its node's events, by the filters of its source."""

from __future__ import annotations

from gateway.terminus.filters import Filters
from gateway.terminus.no_local import NO_LOCAL, origin_of
from native_backend.events.selection import Selection
from transformers.selector.fields import octets_read
from transformers.selector.grammar import SelectorError
from transformers.selector.selector import selector


def asked_selection(filters: Filters, container: str, longest: int) -> Selection | None:
    """None: every event. `longest`: characters of a selector. Raises SelectorError."""
    text = filters.selector or ""
    if not text and not filters.no_local:
        return None
    if len(text) > longest:
        raise SelectorError(longest, f"longer than {longest} characters")
    select, read = (selector(text).select, octets_read) if text else (_all, _none)
    if not filters.no_local:
        return Selection(text, select, octets_read=read)
    return Selection(f"{NO_LOCAL}{container}; {text}", select, origin_of(container), read)


def _all(values: list[bytes]) -> list[bool]:
    return [True] * len(values)


def _none(value: bytes) -> int:
    return 0
