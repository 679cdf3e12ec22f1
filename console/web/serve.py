"""The process: a socket, uvicorn around the console, until SIGTERM or SIGINT. Prints where it listens when it does."""

from __future__ import annotations

import logging
import signal
import socket
import sys

import uvicorn

from console.limits import CONNECTIONS
from console.settings import Settings
from console.web.app import Console
from gateway.config.tls import context
from native_backend.clock import SystemClock

_BACKLOG = 100


def serve(settings: Settings) -> None:
    """Returns when it was told to stop. Raises OSError where it cannot listen, SettingsError."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    console = Console(settings, SystemClock())
    listening = _listener(settings.host, settings.port)
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
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stopped)  # uvicorn raises the signal again when it has stopped
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    sys.stdout.write(f"console at {'https' if settings.secure else 'http'}://{shown}:{port}\n")
    sys.stdout.flush()
    uvicorn.Server(config).run(sockets=[listening])


def _stopped(_number: int, _frame: object) -> None:
    """It has stopped in order."""


def _listener(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from error
    return opened
