"""Whose a durable is: it belongs to the user who made it. Another user needs the grant `any-durable`, on its node or on
the realm; there need not be any other grant.

A durable without an owner is open to every user who may use durables there: a peer without a login made it, or a
release before owners were kept, or an attach whose tables say that durables belong to the realm. An exclusive one
belongs to the first user with a login who attaches to it. A shared one stays open: several users may share it already.
Asked where the table `attach` says `belongs_to: user`. Source: ADR 0117.
"""

from __future__ import annotations

from typing import Final

from native_backend.nodes.durable import Durable
from native_backend.nodes.durable_terms import DurableTerms
from native_backend.nodes.grants import ANONYMOUS, Subject, deciding_grant
from native_backend.nodes.metadata import Metadata

ANY_DURABLE: Final = "any-durable"
NOT_OWNED: Final = "owned-by-another-user"
"""The native code of what a durable's owner may and others may not."""


def owner_of(subject: Subject) -> str:
    """The name that a durable keeps of the user who makes it. Empty: peers without a login have none to be known by."""
    return "" if subject.user == ANONYMOUS.user else subject.user


def owner_after(durable: Durable, subject: Subject, terms: DurableTerms) -> str:
    """Of a durable that this user has attached to, on these terms."""
    return durable.owner if durable.owner or terms.shared else owner_of(subject)


def may_use(metadata: Metadata, subject: Subject, durable: Durable) -> bool:
    """Also: end it."""
    if durable.owner in ("", subject.user):
        return True
    node = metadata.stores.get(durable.store)
    acl = (node.properties.acl if node is not None else ()) + metadata.acl
    return deciding_grant(acl, subject, ANY_DURABLE) is not None
