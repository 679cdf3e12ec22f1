"""Connections that want to be the only one of their container, as JMS does for a client id.

A peer asks by the capability `sole-connection-for-container` in its OPEN, and says by a property which of the two goes:
the new one (0, or nothing said), or the one that is there (1). Detection is weak (1, and our OPEN says so): only
connections that asked count, so that a tool which uses a container's name and does not ask disturbs no other
connection. No user closes another user's connection: there, the new one goes. Our OPEN repeats the policy where it is
carried out.
Source: AMQP Enforcing Connection Uniqueness 1.0, section 3.
"""

from __future__ import annotations

from typing import Any, Final

from gateway.amqp.error_description import ErrorDescription
from gateway.frames.frames import Frame
from gateway.links.peer import Peer
from transformers.codec import AmqpMap, Array, Symbol, UInt

CAPABILITY: Final = "sole-connection-for-container"
FAILED: Final = Symbol("amqp:connection-establishment-failed")
_DETECTION: Final = Symbol("sole-connection-detection-policy")
_ENFORCEMENT: Final = Symbol("sole-connection-enforcement-policy")
_WEAK: Final = 1
_REFUSE_NEW, _CLOSE_EXISTING = 0, 1
_CONTAINER, _DESIRED, _PROPERTIES = 0, 8, 9
REFUSED: Final = ErrorDescription(
    "a connection of this container is there", (("invalid-field", Symbol("container-id")),)
)
REPLACED: Final = ErrorDescription("a newer connection of this container", (("sole-connection-enforcement", True),))

Properties = list[tuple[Symbol, Any]]


class SoleConnections:
    """One gateway's, by container; as many as there are connections."""

    def __init__(self) -> None:
        self._connections: dict[str, Peer] = {}
        self._leaving: dict[Peer, Peer] = {}  # who has to go, by who opens; itself, where it is refused

    def claim(self, connection: Peer, opened: Frame) -> Properties:
        """For who opens: what our OPEN says. Behind it, `enforce` closes who has to go."""
        if not _asks(opened):
            return []
        container = str(opened.field(_CONTAINER) or "")
        properties: Properties = [(_DETECTION, UInt(_WEAK))]
        policy, older = _policy(opened), self._connections.get(container)
        if older is not None and (policy == _REFUSE_NEW or older.subject.user != connection.subject.user):
            kept = [(_ENFORCEMENT, UInt(policy))] if policy == _REFUSE_NEW else []
            self._leaving[connection] = connection
            return [*properties, *kept, (FAILED, True)]
        self._connections[container] = connection
        if older is not None:
            self._leaving[connection] = older
        return [*properties, (_ENFORCEMENT, UInt(policy))]

    def enforce(self, connection: Peer) -> None:
        """Behind our OPEN."""
        leaving = self._leaving.pop(connection, None)
        if leaving is connection:
            connection.fault("container-in-use", REFUSED)
        elif leaving is not None:
            leaving.fault("container-taken-over", REPLACED)

    def leave(self, connection: Peer) -> None:
        """It is going."""
        self._leaving.pop(connection, None)
        if self._connections.get(connection.container) is connection:
            del self._connections[connection.container]


def _asks(opened: Frame) -> bool:
    desired = opened.field(_DESIRED)
    return CAPABILITY in (desired.items if isinstance(desired, Array) else [desired])


def _policy(opened: Frame) -> int:
    """Which of the two is to go; the new one where it does not say."""
    properties = opened.field(_PROPERTIES)
    pairs = properties.pairs if isinstance(properties, AmqpMap) else []
    wanted = any(name == _ENFORCEMENT and policy == _CLOSE_EXISTING for name, policy in pairs)
    return _CLOSE_EXISTING if wanted else _REFUSE_NEW
