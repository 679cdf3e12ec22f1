"""What the pages for operators are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.reload.certificates import Certificates
    from gateway.reload.tables import TableReload
    from gateway.reload.watched_files import WatchedFiles
    from gateway.session.gateway import Gateway


@dataclass(frozen=True, slots=True)
class Watched:
    """A gateway that serves, and the `files` that are read again while it does: its tables (`reload`), and the others.
    `certificates`: None where it speaks no TLS."""

    gateway: Gateway
    reload: TableReload
    certificates: Certificates | None = None
    files: Sequence[WatchedFiles] = ()
    listen: Sequence[str] = ()
    """Where it listens."""
