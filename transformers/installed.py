"""Event transformers by name: `complete`, and the classes of users that are installed here as entry points of GROUP.

Errors: `TransformerError`, with what to do. A class of a user is loaded when its name is asked for, so that one that is
broken harms nobody who does not use it. May import: the standard library, `transformers.events`, `complete`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from transformers.complete import Complete
from transformers.events import GROUP, EventTransformer

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMPLETE = "complete"
_RESERVED = ("none", "basic", COMPLETE)
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")


class TransformerError(Exception):
    """A transformer cannot be used; the words say why and what to do."""


def user_names() -> list[str]:
    """What users have installed, loadable or not."""
    return sorted({point.name for point in _points()} - set(_RESERVED))


def event_transformer(name: str) -> EventTransformer:
    """A new one. Raises TransformerError."""
    if name == COMPLETE:
        return Complete()
    found = [] if name in _RESERVED else [point for point in _points() if point.name == name]
    if not found or not _NAME.fullmatch(name):
        known = ", ".join((*_RESERVED, *user_names()))
        raise TransformerError(
            f"no transformer is called {name!r} (there are {known}): install the distribution that has it as an entry"
            f" point of {GROUP}; a name is made of a-z, 0-9 and -"
        )
    if len(found) > 1:
        owners = " and ".join(sorted(map(_owner, found)))
        raise TransformerError(f"transformer {name!r} comes from {owners}: remove one of them")
    return _made(found[0])


def _points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # takes longer to import than all of this package

    return entry_points(group=GROUP)


def _made(point: EntryPoint) -> EventTransformer:
    where = f"transformer {point.name!r} ({point.value}, of {_owner(point)})"
    try:
        made = point.load()()
    except Exception as error:  # whatever the class of a user raises is told, and nothing starts
        raise TransformerError(
            f"{where} cannot be made: {type(error).__name__}: {error}; mend it, or do not name it"
        ) from error
    missing = [method for method in ("event", "message") if not callable(getattr(made, method, None))]
    if missing:
        raise TransformerError(f"{where} has no method {' and no method '.join(missing)}: see EventTransformer")
    transformer: EventTransformer = made
    return transformer


def _owner(point: EntryPoint) -> str:
    return f"distribution {point.dist.name}" if point.dist is not None else "an unnamed distribution"
