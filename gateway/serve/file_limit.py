"""How many files this process may open: every connection takes a descriptor, and the realm's log some of its own.

The soft limit is raised, as far as the hard one lets it. Where that is too little for `limits.connections`, fewer are
served, and the log says so: with no descriptor left it would be the realm that fails.
"""

from __future__ import annotations

import logging
import resource
from contextlib import suppress

from gateway.config.settings import EmbeddedRealm, Settings

log = logging.getLogger("realmgate.serving")

OF_A_STORE = 8  # on Kafka, where each that is read has a client
OWN = 256  # of the log, its clients and their brokers, the listeners, the admin pages


def files_of_stores(settings: Settings) -> int:
    """So many take the stores that may be read."""
    return 0 if isinstance(settings.realm, EmbeddedRealm) else OF_A_STORE * settings.limits.stores_read


def raise_file_limit(connections: int, of_stores: int = 0) -> int:
    """So many connections can be served: what was asked for, or as many as there may be descriptors for. `of_stores`:
    what else there is to be room for, as far as the hard limit lets it."""
    wanted = connections + OWN
    most = wanted + of_stores
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < most:
        with suppress(OSError, ValueError):  # of a kernel that does not let us: what there is stays
            resource.setrlimit(resource.RLIMIT_NOFILE, (most if hard < 0 else min(most, hard), hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if not 0 <= soft < wanted:
        return connections
    room = max(soft - OWN, soft // 2)
    log.warning(
        "this process may open %d files: it serves %d connections, and not the %d of limits.connections, which take "
        "%d. Raise the hard limit (ulimit -Hn; LimitNOFILE= of a systemd unit; --ulimit nofile= of a container)",
        soft,
        room,
        connections,
        wanted,
    )
    return room
