"""`realmgate serve`: from a configuration to the exit code. What exists once in a process is made here, in order."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import time
from dataclasses import replace
from functools import partial

import uvloop

from gateway.admin.progress import Progress
from gateway.config.file_modes import open_warnings
from gateway.config.listen_faults import address_problems, bind_problem
from gateway.config.settings import Settings, SettingsProblems
from gateway.reload.table_checker import TableChecker
from gateway.reload.tables import TableReload, files_of
from gateway.reload.watched_files import signature_of
from gateway.serve import log_format
from gateway.serve.checked_tables import checked_tables
from gateway.serve.file_limit import files_of_stores, raise_file_limit
from gateway.serve.malloc_arena import use_one_arena
from gateway.serve.open_realm import open_realm
from gateway.serve.sd_notify import SdNotify
from gateway.server.server import Server
from gateway.session.gateway import Gateway
from native_backend.clock import SystemClock
from native_backend.realm import Realm

log = logging.getLogger("realmgate.serving")
EVIDENCE_DEADLINE_S = 10.0
"""For the first records of a run; serving does not depend on them."""
_PAUSE_S = 0.001


def serve(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; 0 when everything was closed in order, 3 when another gateway took over the realm.
    Raises LogError when the realm cannot be opened, SettingsProblems when an address cannot be listened at."""
    log_format.use(settings.log_format)
    use_one_arena()
    connections = raise_file_limit(settings.limits.connections, files_of_stores(settings))
    settings = replace(settings, limits=replace(settings.limits, connections=connections))
    clock = SystemClock()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it means a reload: not the end of who waits for a realm
    seen = signature_of(files_of(settings.mappings.directory))
    problems = address_problems(settings)
    tables = checked_tables(settings, problems)
    run = f"{time.time_ns() // 1_000_000:x}-{os.urandom(2).hex()}"
    admin = _listen_for_admins(settings)
    progress = Progress()
    notify = SdNotify(os.environ, progress)
    realm = _open_realm(settings, run, clock, admin, progress)
    gateway = Gateway(settings, realm, tables, clock)
    _begin_evidence(gateway)
    for words in open_warnings(settings, realm.authorizer.has_grants):
        log.warning("%s", words)
    if gateway.users.weakness:
        log.warning("%s", gateway.users.weakness)
    gc.freeze()  # what is here now stays; and cycles are rare on the hot path, so look for them seldom
    gc.set_threshold(100_000, 20, 100)
    checker = TableChecker()
    if settings.mappings.directory is not None:
        checker.start()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        server = Server(gateway, TableReload(gateway, seen, checker), admin)
        server.on_started, server.on_stopping = partial(notify.started, gateway), notify.stopping
        return runner.run(server.run())


def _begin_evidence(gateway: Gateway) -> None:
    """Until its first outcome record is stored no message is accepted: so a run without any has lost its evidence."""
    gateway.begin_evidence()
    until_s = time.monotonic() + EVIDENCE_DEADLINE_S
    while gateway.realm.busy and time.monotonic() < until_s:
        gateway.poll()
        time.sleep(_PAUSE_S)
    if gateway.realm.busy:
        log.warning("the first outcome record is not stored yet: the gateway serves and tries again")


def _listen_for_admins(settings: Settings) -> socket.socket | None:
    if settings.admin is None:
        return None
    from gateway.admin.http import listener, url_of

    try:
        opened = listener(settings.admin.host, settings.admin.port)
    except OSError as error:
        raise SettingsProblems([bind_problem(settings.admin, "admin.listen", error)]) from None
    log.info("health and metrics at %s", url_of(opened))
    return opened


def _open_realm(
    settings: Settings, run: str, clock: SystemClock, admin: socket.socket | None, progress: Progress
) -> Realm:
    if admin is None:
        return open_realm(settings, run, clock, progress)
    from gateway.admin.pages import answering  # prometheus-client takes memory: only where it is asked for

    with answering(admin, progress, run):
        return open_realm(settings, run, clock, progress)
