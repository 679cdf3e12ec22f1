"""The process: a socket, uvicorn around the console, until SIGTERM or SIGINT. Prints where it listens when it does."""

from __future__ import annotations

import logging
import signal
import sys

import uvicorn

from console.limits import CONNECTIONS
from console.poll.priority import give_way
from console.settings import Settings
from console.web.app import Console
from gateway.config.listening import listening_socket
from gateway.config.tls import context
from native_backend.clock import SystemClock

_BACKLOG = 100


def serve(settings: Settings) -> None:
    """Returns when it was stopped. Raises OSError where it cannot listen, SettingsError."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    console = Console(settings, SystemClock())
    address = f"{settings.host}:{settings.port}"
    listening = listening_socket(settings.host, settings.port, _BACKLOG, address)
    config = uvicorn.Config(
        console.app,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=CONNECTIONS,
        timeout_graceful_shutdown=1,
    )
    config.load()
    config.ssl = context(settings.tls) if settings.tls is not None else None  # uvicorn would ask for a password
    server = uvicorn.Server(config)

    def stopped(_number: int, _frame: object) -> None:
        """Before uvicorn listens for signals: end. It raises them again when it has stopped: then all is done."""
        if not server.should_exit:
            raise SystemExit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stopped)
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    sys.stdout.write(f"console at {'https' if settings.secure else 'http'}://{shown}:{port}\n")
    sys.stdout.flush()
    if settings.gives_way:
        give_way()
    server.run(sockets=[listening])
