"""Connections that want to be the only one of their container, as JMS does for a client id.

A peer asks by the capability `sole-connection-for-container` in its OPEN, and says by a property which of the two goes:
the new one (0, or nothing said), or the one that is there (1). Detection is weak (1, and our OPEN says so): only
those that asked count, so that a tool which has a container's name and asks for nothing disturbs nobody. Nobody
closes another user's connection: there, the new one goes.
Source: AMQP Enforcing Connection Uniqueness 1.0, section 3. May import: `gateway.complaint`, `gateway.frames`,
`transformers.amqp_types`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gateway.complaint import Complaint
from gateway.frames import Frame
from transformers.amqp_types import AmqpMap, Array, Symbol, UInt

if TYPE_CHECKING:
    from gateway.connection import Connection

CAPABILITY: Final = "sole-connection-for-container"
FAILED: Final = Symbol("amqp:connection-establishment-failed")
_DETECTION: Final = Symbol("sole-connection-detection-policy")
_ENFORCEMENT: Final = "sole-connection-enforcement-policy"
_WEAK, _CLOSE_EXISTING = 1, 1
_CONTAINER, _DESIRED, _PROPERTIES = 0, 8, 9
REFUSED: Final = Complaint("a connection of this container is there", (("invalid-field", Symbol("container-id")),))
REPLACED: Final = Complaint("a newer connection of this container", (("sole-connection-enforcement", True),))

Properties = list[tuple[Symbol, Any]]


class SoleConnections:
    """One gateway's, by container; as many as there are connections."""

    def __init__(self) -> None:
        self._connections: dict[str, Connection] = {}

    def claim(self, connection: Connection, opened: Frame) -> tuple[Properties, Connection | None]:
        """For who opens: what our OPEN says, and who has to go. Itself is refused, nobody: nothing happens."""
        if not _asks(opened):
            return [], None
        container = str(opened.field(_CONTAINER) or "")
        properties: Properties = [(_DETECTION, UInt(_WEAK))]
        older = self._connections.get(container)
        if older is not None and (older.subject.user != connection.subject.user or not _replaces(opened)):
            return [*properties, (FAILED, True)], connection
        self._connections[container] = connection
        return properties, older

    def leave(self, connection: Connection) -> None:
        """It is going."""
        if self._connections.get(connection.container) is connection:
            del self._connections[connection.container]


def _asks(opened: Frame) -> bool:
    desired = opened.field(_DESIRED)
    return CAPABILITY in (desired.items if isinstance(desired, Array) else [desired])


def _replaces(opened: Frame) -> bool:
    properties = opened.field(_PROPERTIES)
    pairs = properties.pairs if isinstance(properties, AmqpMap) else []
    return any(name == _ENFORCEMENT and policy == _CLOSE_EXISTING for name, policy in pairs)
