"""A realm that serves goes on after a mistake of ours, and counts it. A test has to fail."""

from __future__ import annotations

from native_backend.interface import NativeRealm
from native_backend.state.mistakes import unforeseen


def raise_mistakes(realm: NativeRealm) -> None:
    """Each exception goes up to the caller of `poll`."""
    setattr(realm.mistakes, "note", unforeseen)  # noqa: B010  # mypy would not have a method replaced
