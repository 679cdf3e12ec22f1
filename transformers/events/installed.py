"""Event transformers by name: `complete`, and the classes of users that are installed here as entry points of GROUP.

Errors: `TransformerError`, with what to do. A class of a user is loaded when its name is asked for, so that one that is
broken harms only the nodes that use it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from transformers.events.complete import Complete
from transformers.events.native_event import GROUP, EventTransformer

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMPLETE = "complete"
_RESERVED = ("none", "basic", COMPLETE)
_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_loaded: dict[str, tuple[EntryPoint, Callable[[], object]]] = {}  # looking up reads what is installed: milliseconds


class TransformerError(Exception):
    """A transformer cannot be used; the words say why and what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message}; {remedy}")
        self.message, self.remedy = message, remedy


def user_names() -> list[str]:
    """What users have installed, loadable or not."""
    return sorted({point.name for point in _points()} - set(_RESERVED))


def complaint_about(name: str) -> tuple[str, str] | None:
    """Why no transformer of this name can be made here, and what to do; None: one can. What is installed is looked up
    anew."""
    if name in _RESERVED:
        return None
    try:
        point = _point(name)
        _made(point, _load(point))
    except TransformerError as error:
        return error.message, error.remedy
    return None


def event_transformer(name: str) -> EventTransformer:
    """A new one. Raises TransformerError."""
    if name == COMPLETE:
        return Complete()
    return _made(*_found(name))


def is_loaded(name: str) -> bool:
    """Nothing needs to be looked up or imported to make one."""
    return name in _RESERVED or name in _loaded


def _found(name: str) -> tuple[EntryPoint, Callable[[], object]]:
    """The entry point and its class, which is imported once in a process."""
    known = _loaded.get(name)
    if known is None:
        point = _point(name)
        known = _loaded[name] = point, _load(point)
    return known


def _point(name: str) -> EntryPoint:
    points = [] if name in _RESERVED else [point for point in _points() if point.name == name]
    if not points or not _NAME.fullmatch(name):
        known = ", ".join((*_RESERVED, *user_names()))
        raise TransformerError(
            f"no transformer is called {name!r} (there are {known})",
            f"install the distribution that has it as an entry point of {GROUP}; a name is made of a-z, 0-9 and -",
        )
    if len(points) > 1:
        owners = " and ".join(sorted(map(_owner, points)))
        raise TransformerError(f"transformer {name!r} comes from {owners}", "remove one of them")
    return points[0]


def _points() -> Iterable[EntryPoint]:
    from importlib.metadata import entry_points  # takes longer to import than all of this package

    return entry_points(group=GROUP)


def _load(point: EntryPoint) -> Callable[[], object]:
    try:
        loaded: Callable[[], object] = point.load()
    except Exception as error:  # each exception of a user's module is reported, and nothing starts
        raise _unmade(point, error) from error
    return loaded


def _made(point: EntryPoint, make: Callable[[], object]) -> EventTransformer:
    try:
        made: Any = make()
    except Exception as error:  # the same of its class
        raise _unmade(point, error) from error
    where = _where(point)
    missing = [method for method in ("event", "message") if not callable(getattr(made, method, None))]
    if missing:
        raise TransformerError(f"{where} has no method {' and no method '.join(missing)}", "see EventTransformer")
    transformer: EventTransformer = made
    return transformer


def _unmade(point: EntryPoint, error: Exception) -> TransformerError:
    cause = f"{type(error).__name__}: {error}"
    return TransformerError(f"{_where(point)} cannot be made: {cause}", "mend it, or do not name it")


def _where(point: EntryPoint) -> str:
    return f"transformer {point.name!r} ({point.value}, of {_owner(point)})"


def _owner(point: EntryPoint) -> str:
    return f"distribution {point.dist.name}" if point.dist is not None else "an unnamed distribution"
