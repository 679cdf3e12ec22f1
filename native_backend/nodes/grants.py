"""Access: who may do what with which node, decided by the grants on the node and on the realm.

Grants add up, and no grant denies: a user with a grant for the operation, on the node or on the realm, may do it. A
node without grants, in a realm without grants, is open to every user. Publish is a queue's push, subscribe its pop.
Asked by `native_backend.access.authorizer`.
Source: semantics.md 3.5 (UM's operations), ADR 0029.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from native_backend.nodes.properties import Grant

SUBSCRIBING: Final = {
    "queue": frozenset({"subscribe"}),
    "plain": frozenset({"subscribe"}),
    "durable": frozenset({"subscribe", "durable"}),
    "browse": frozenset({"peek"}),
}
"""What each mode of subscription needs."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A user who wants to do something: its name and its groups."""

    user: str
    groups: frozenset[str] = frozenset()

    def is_named_by(self, who: str) -> bool:
        """`who` as in a grant."""
        kind, _, name = who.partition(":")
        return who == "*" or (kind == "user" and name == self.user) or (kind == "group" and name in self.groups)


ANONYMOUS: Final = Subject("anonymous")
"""The user of a peer without a login."""


def deciding_grant(acl: tuple[Grant, ...], subject: Subject, operation: str) -> Grant | None:
    """The first grant that allows it."""
    return next((grant for grant in acl if operation in grant.operations and subject.is_named_by(grant.who)), None)
