"""Names of nodes: which of them come into being because a peer names them, and what a dynamic node is called.

A dynamic node's name is reserved: no attach creates a node of that name, so a reply to a requester that has gone finds
no node, whatever `nodes.create_on_attach` says. Source: semantics.md M-3, M-4, M-9.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from gateway.config.limits import GENERATED_NAME_PART

GENERATED: Final = "temporary:"


def generated_name(container: str, link: str, random: str) -> str:
    """A name that shows its container and link, and cannot be guessed."""
    return f"{GENERATED}{container[:GENERATED_NAME_PART]}.{link[:GENERATED_NAME_PART]}.{random}"


def may_be_created_on_attach(name: str, patterns: Sequence[str]) -> bool:
    """`patterns` are those of `nodes.create_on_attach`."""
    return not name.startswith(GENERATED) and any(fnmatchcase(name, pattern) for pattern in patterns)
