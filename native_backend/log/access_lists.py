"""Rights: the access lists that a log itself keeps, and what they allow a user. Pure.

Evaluated as Kafka's StandardAuthorizer does: what is denied is denied whatever is allowed; otherwise an allowing entry
is needed; an entry's operation is the requested one, or all. Two things differ, both to the stricter side. An entry for
one host: data comes from the gateway's host, not from the user's, so it denies but does not allow. The brokers do not
expose their super users and `allow.everyone.if.no.acl.found`: no user counts as a super user, and without an entry the
answer is no.
Source: kafka.md section 8, Kafka's documentation "Authorization and ACLs".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Operation = Literal["READ", "WRITE"]
EVERYBODY = "User:*"


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """One line about topics. `operation` in Kafka's words."""

    principal: str
    name: str
    prefixed: bool
    operation: str
    allows: bool
    host: str = "*"

    def concerns(self, topic: str) -> bool:
        return topic.startswith(self.name) if self.prefixed else self.name in (topic, "*")


@dataclass(frozen=True, slots=True)
class AccessLists:
    """All lines about topics at one moment. Equal when they say the same."""

    entries: frozenset[AccessEntry]
    _of: dict[str, list[AccessEntry]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for entry in self.entries:
            self._of.setdefault(entry.principal, []).append(entry)

    def allow(self, user: str, operation: Operation, topic: str) -> bool:
        concerned = [*self._of.get("User:" + user, ()), *self._of.get(EVERYBODY, ())]
        matches = [entry for entry in concerned if entry.operation in (operation, "ALL") and entry.concerns(topic)]
        if not all(entry.allows for entry in matches):
            return False
        return any(entry.host == "*" for entry in matches)
