"""How many files this process may open: every connection takes a descriptor, and the realm's log some of its own.

The soft limit is raised, as far as the hard one lets it. Where that is too little for `limits.connections`, fewer are
served, and the log says so: with no descriptor left it would be the realm that fails.
"""

from __future__ import annotations

import logging
import resource
from contextlib import suppress

log = logging.getLogger("realmgate.serving")

OWN = 256  # of the log, its clients and their brokers, the listeners, the admin pages


def raise_file_limit(connections: int) -> int:
    """So many connections can be served: what was asked for, or as many as there may be descriptors for."""
    wanted = connections + OWN
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < wanted:
        with suppress(OSError, ValueError):  # of a kernel that does not let us: what there is stays
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard < 0 else min(wanted, hard), hard))
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
