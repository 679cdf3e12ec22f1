"""The filters of an ATTACH's source: known by what describes them, whatever their key (semantics 3.7). A filter of null
is none (J-1), and so is a selector without a word in it.

| described by | it is |
|---|---|
| `apache.org:selector-filter:string`, 0x468C00000004, or with the key `jms-selector` | a selector |

May import: `transformers.amqp_types`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from transformers.amqp_types import AmqpMap, Described

_SELECTOR: Final = ("apache.org:selector-filter:string", 0x0000468C00000004)
_SELECTOR_KEY: Final = "jms-selector"


@dataclass(frozen=True, slots=True)
class Filters:
    """`kind` is a value of the axis `filter` of table `attach`."""

    kind: str = "none"  # none, selector, unsupported
    selector: str | None = None


NONE: Final = Filters()


def read_filters(filters: Any) -> Filters:
    if filters is None:
        return NONE
    if not isinstance(filters, AmqpMap):
        return Filters("unsupported")
    selector: str | None = None
    for key, value in filters.pairs:
        if value is None:
            continue
        text = value.value if isinstance(value, Described) and _is_selector(key, value) else None
        if not isinstance(text, str) or selector is not None:
            return Filters("unsupported")
        selector = text
    if selector is None or not selector.strip():
        return NONE
    return Filters("selector", selector)


def _is_selector(key: Any, value: Described) -> bool:
    return value.descriptor in _SELECTOR or key == _SELECTOR_KEY
