"""`realmgate serve`: from a configuration to the exit code. What exists once in a process is made here, in order.

May import: `gateway`, `mappings`, `native_backend`, `transformers`.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import time
from dataclasses import replace

import uvloop

from gateway.arena import use_one_arena
from gateway.checker import Checker
from gateway.descriptors import room_for
from gateway.gateway import Gateway
from gateway.opening import Progress, open_realm
from gateway.reload import Reload, signature_of
from gateway.server import Server
from gateway.settings import Settings
from mappings import MappingProblems, TableSet, load_tables
from mappings.classify_file import unusable_transformers
from mappings.errors import usable_errors_of
from native_backend.clock import SystemClock
from native_backend.realm import Realm
from transformers.installed import complaint_about

log = logging.getLogger("realmgate.serving")


def serve(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; 0 when everything was closed in order, 3 when another gateway took the realm over.
    Raises LogError when the realm cannot be opened, OSError when the admin address cannot be listened at."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    use_one_arena()
    settings = replace(settings, limits=replace(settings.limits, connections=room_for(settings.limits.connections)))
    clock = SystemClock()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until it means a reload: not the end of who waits for a realm
    seen = signature_of(settings.mappings.directory)
    tables = _load(settings)
    run = f"{time.time_ns() // 1_000_000:x}-{os.urandom(2).hex()}"
    admin = _listen_for_admins(settings)
    realm = _open_realm(settings, run, clock, admin)
    gateway = Gateway(settings, realm, tables, clock)
    gateway.store_tables()
    gc.freeze()  # what is here now stays; and cycles are rare on the hot path, so look for them seldom
    gc.set_threshold(100_000, 20, 100)
    checker = Checker()
    if settings.mappings.directory is not None:
        checker.start()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(Server(gateway, Reload(gateway, seen, checker), admin).run())


def _load(settings: Settings) -> TableSet:
    """The tables. Raises MappingProblems, also about transformers and native errors (`open_log` uses these)."""
    directory = settings.mappings.directory
    tables = load_tables(directory, settings.mappings.profile)
    problems = usable_errors_of(directory)[1]
    problems += unusable_transformers(tables.classify, complaint_about)
    if problems:
        raise MappingProblems(problems)
    return tables


def _listen_for_admins(settings: Settings) -> socket.socket | None:
    if settings.admin is None:
        return None
    from gateway.admin.http import listener, url_of

    opened = listener(settings.admin.host, settings.admin.port)
    log.info("health and metrics at %s", url_of(opened))
    return opened


def _open_realm(settings: Settings, run: str, clock: SystemClock, admin: socket.socket | None) -> Realm:
    progress = Progress()
    if admin is None:
        return open_realm(settings, run, clock, progress)
    from gateway.admin.station import answering  # prometheus-client takes memory: only where it is asked for

    with answering(admin, progress, run):
        return open_realm(settings, run, clock, progress)
