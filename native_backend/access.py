"""Access: who may do what with which node, decided by grants on the node and on the realm.

May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Subject:
    """Somebody who asks: a user's name, and the groups it is in."""

    user: str
    groups: frozenset[str] = frozenset()


ANONYMOUS = Subject("anonymous")
"""Whoever has not said who it is."""
