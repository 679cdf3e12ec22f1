"""A peer's connection, as its links use it. Source: ADR 0087."""

from __future__ import annotations

from typing import Protocol

from gateway.amqp.link_ends import Link
from gateway.evidence.notices import PeerIdentity
from gateway.links.connection_record import ConnectionRecord
from gateway.links.expiry_scopes import ExpiryScopes
from gateway.links.shared import Shared
from gateway.links.write_pressure import WritePressure


class Peer(PeerIdentity, Protocol):
    """`touch` marks that there is something to send. Conditions and descriptions are those of AMQP."""

    @property
    def gateway(self) -> Shared: ...

    @property
    def holder(self) -> str:
        """Whose share of a limit it draws on: `gateway.quotas.shares`."""

    @property
    def record(self) -> ConnectionRecord: ...

    @property
    def write_pressure(self) -> WritePressure: ...

    @property
    def expiry_scopes(self) -> ExpiryScopes: ...

    def touch(self) -> None: ...

    def fault(self, fault: str, detail: str, link: Link | None = None, channel: int | None = None) -> None:
        """The peer broke the protocol; the table `fault` says what closes."""

    def close_link(self, link: Link, condition: str, detail: str) -> None:
        """Detach for good, with a reason."""

    def confirmed(self, link: Link) -> None:
        """A link has its owner, and its peer has the answer."""

    def finish(self, link: Link, condition: str | None, detail: str) -> None:
        """Answer the closing DETACH of a link that had something left to do."""

    def wait(self) -> None:
        """Carry nothing more out until `resume`."""

    def resume(self) -> None: ...
