"""Names of nodes: which of them come into being because a peer names them, and what a dynamic node is called.

A dynamic node's name is reserved: nobody makes a node of it, so an answer to who has gone is told that there is no such
node, whatever `nodes.create_on_attach` says. Source: semantics.md M-3, M-4, M-9.
May import: `gateway.limits`, the standard library.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from gateway.limits import GENERATED_NAME_PART

GENERATED: Final = "temporary:"


def generated_name(container: str, link: str, random: str) -> str:
    """Says whose it is, and nobody guesses it."""
    return f"{GENERATED}{container[:GENERATED_NAME_PART]}.{link[:GENERATED_NAME_PART]}.{random}"


def is_made_when_named(name: str, patterns: Sequence[str]) -> bool:
    """`patterns` are those of `nodes.create_on_attach`."""
    return not name.startswith(GENERATED) and any(fnmatchcase(name, pattern) for pattern in patterns)
