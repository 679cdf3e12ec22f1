"""What is wrong with the addresses to listen at: FILE:LINE, the address, the machine's words, and what to write.

A name is asked for, and an address of this machine made sure of, before anything is opened. Whether a port is free is
known when it is taken: a standby may wait for the one that has it.
"""

from __future__ import annotations

import errno
import os
import socket

from gateway.config.settings import Listen, Settings
from mappings.language.yaml_lines import Problem

_HERE = "write an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all that it has"


def address_problems(settings: Settings) -> list[Problem]:
    """Of every address that is written."""
    problems = [_problem(address, "listen") for address in settings.listen]
    problems += [_problem(settings.admin, "admin.listen")] if settings.admin is not None else []
    return [problem for problem in problems if problem is not None]


def _problem(listen: Listen, key: str) -> Problem | None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            listen.host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        words = f"{key}: {listen.host} means no address here: {getattr(error, 'strerror', None) or error}"
        return listen.problem(words, _HERE)
    with socket.socket(family, kind, protocol) as probe:
        try:
            probe.bind(address)  # port 0: any
        except OSError as error:
            return listen.problem(f"{key}: {listen.host}: {_words(error)}", _HERE)
    return None


def bind_problem(listen: Listen, key: str, error: OSError) -> Problem:
    """It could not be listened at."""
    if error.errno == errno.EADDRINUSE:
        remedy = f"stop what listens at port {listen.port} (`ss -ltnp` names it), or write another port"
    elif error.errno == errno.EACCES:
        remedy = "write a port from 1024 on, or give the gateway the right to lower ones"
    else:
        remedy = _HERE
    return listen.problem(f"{key}: {_words(error)}", remedy)


def _words(error: OSError) -> str:
    """The system's own, without the library's."""
    return os.strerror(error.errno) if error.errno else str(error)
