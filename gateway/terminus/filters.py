"""The filters of an ATTACH's source: known by what describes them, whatever their key (semantics 3.7). A filter of null
is none (J-1), and so is a selector without a word in it.

| described by | it is |
|---|---|
| `apache.org:selector-filter:string`, 0x468C00000004, or with the key `jms-selector` | a selector |
| the same, comparing `amqp.annotation.x-opt-offset` (or one of its sisters) | a position, as at Event Hubs |
| `apache.org:no-local-filter:list`, 0x468C00000003 | nothing of the subscriber's own container: a selector, too |
| `rabbitmq:stream-offset-spec` | a position, as at a stream of RabbitMQ |

A position is an EID (Event Hubs: a number in quotes, `-1` for the beginning, `@latest`; RabbitMQ: a number, `first`,
`next`) or a time in milliseconds since 1970.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from native_backend.nodes.start_position import EARLIEST, LATEST, StartPosition
from transformers.codec import AmqpMap, Described, Symbol, Timestamp, ULong

_SELECTOR: Final = ("apache.org:selector-filter:string", 0x0000468C00000004)
_NO_LOCAL: Final = ("apache.org:no-local-filter:list", 0x0000468C00000003)
_SELECTOR_KEY: Final = "jms-selector"
_NO_LOCAL_KEY: Final = "no-local"
_STREAM_OFFSET: Final = "rabbitmq:stream-offset-spec"
_ANNOTATION: Final = re.compile(
    r"\s*amqp\.annotation\.x-opt-(offset|sequence-number|enqueued-time)\s*(>=|>)\s*'(-1|@latest|[0-9]{1,18})'\s*"
)


@dataclass(frozen=True, slots=True)
class Filters:
    """`kind` is a value of the axis `filter` of table `attach`."""

    kind: str = "none"  # none, selector, position, unsupported
    selector: str | None = None
    start: StartPosition = LATEST
    no_local: bool = False


NONE: Final = Filters()


def read_filters(filters: Any) -> Filters:
    if filters is None:
        return NONE
    if not isinstance(filters, AmqpMap):
        return Filters("unsupported")
    selectors: list[str] = []
    starts: list[StartPosition] = []
    no_local = False
    for key, value in filters.pairs:
        if not isinstance(key, Symbol):
            return Filters("unsupported")
        if value is None:
            continue
        start = _position(value)
        text = value.value if isinstance(value, Described) and _is_selector(key, value) else None
        if isinstance(value, Described) and value.descriptor in _NO_LOCAL:
            no_local = True
        elif start is not None:
            starts.append(start)
        elif isinstance(text, str):
            selectors.append(text)
        else:
            return Filters("unsupported")
    if len(selectors) > 1 or len(starts) > 1:
        return Filters("unsupported")
    selector = selectors[0] if selectors and selectors[0].strip() else None
    if starts:
        return Filters("position", selector, starts[0], no_local)
    return Filters("selector", selector, no_local=no_local) if no_local or selector is not None else NONE


def filters_in_effect(filters: AmqpMap | None) -> AmqpMap | None:
    """Of a filter set that was taken: a selector without a word in it selects nothing, and one of null is none."""
    pairs = [] if filters is None else [(key, value) for key, value in filters.pairs if not _is_blank(key, value)]
    return AmqpMap(pairs) if pairs else None


def selecting_filters(selector: str, no_local: bool) -> AmqpMap | None:
    """The filter set that asks for that."""
    pairs: list[tuple[Any, Any]] = []
    if selector:
        pairs.append((Symbol(_SELECTOR_KEY), Described(ULong(_SELECTOR[1]), selector)))
    if no_local:
        pairs.append((Symbol(_NO_LOCAL_KEY), Described(ULong(_NO_LOCAL[1]), [])))
    return AmqpMap(pairs) if pairs else None


def _is_blank(key: Any, value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, Described) and _is_selector(key, value) and not str(value.value).strip()


def _is_selector(key: Any, value: Described) -> bool:
    return value.descriptor in _SELECTOR or key == _SELECTOR_KEY


def _position(value: Any) -> StartPosition | None:
    if not isinstance(value, Described):
        return None
    if value.descriptor == _STREAM_OFFSET:
        return _stream_offset(value.value)
    if value.descriptor in _SELECTOR and isinstance(value.value, str):
        match = _ANNOTATION.fullmatch(value.value)
        return _annotated(*match.groups()) if match is not None else None
    return None


def _stream_offset(offset: Any) -> StartPosition | None:
    if isinstance(offset, str):
        return {"first": EARLIEST, "next": LATEST}.get(str(offset))
    if isinstance(offset, Timestamp):
        return StartPosition("time", int(offset))
    return StartPosition("eid", int(offset)) if isinstance(offset, int) and not isinstance(offset, bool) else None


def _annotated(name: str, sign: str, place: str) -> StartPosition | None:
    if name == "enqueued-time":
        return StartPosition("time", int(place) + (sign == ">")) if place.isdigit() else None
    if place.isdigit():
        return StartPosition("eid", int(place) + (sign == ">"))
    return EARLIEST if place == "-1" else LATEST
