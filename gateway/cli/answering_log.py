"""The realm's log, opened for a command that has a `--timeout`: a log that does not answer within it is given up.

What a command reads then takes the time that it takes. Seconds. Errors: `LogError`, and those of `open_log`.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from gateway.cli.typed_numbers import seconds_above_0

if TYPE_CHECKING:
    from gateway.config.settings import Settings
    from native_backend.log.port import Log, LogError

ANSWER_S: Final = 5.0
_CLOSE_S: Final = 0.2


def add_timeout(parser: argparse.ArgumentParser) -> None:
    about = f"for the log's first answer; default: {ANSWER_S:g}"
    parser.add_argument("--timeout", metavar="S", type=seconds_above_0, default=ANSWER_S, help=about)


def open_answering(settings: Settings, timeout_s: float = ANSWER_S) -> Log:
    """Blocks for so long at most."""
    from gateway.serve.open_log import open_log
    from native_backend.journal.lease_records import lease_topic

    log = open_log(settings)
    try:
        log.control.find_topics([lease_topic(settings.realm.prefix)], timeout_s)
    except BaseException:
        log.close(_CLOSE_S)
        raise
    return log


def remedy_of(error: LogError, settings: Settings) -> str:
    """What an operator does about it."""
    from gateway.config.settings import EmbeddedRealm
    from native_backend.log.port import FORMAT

    cause = error.failure.cause
    if cause == "fenced":
        return "another gateway serves this realm: stop it, or give this one another realm"
    if cause == "refused":
        return "correct realm.client, or give its user the right to do so"
    if error.failure.code == FORMAT:
        return "a newer release wrote it: use that one, or give this gateway another realm"
    if cause in ("unavailable", "indeterminate") and not isinstance(settings.realm, EmbeddedRealm):
        look = (
            f"see whether Kafka runs, and answers `kafka-broker-api-versions --bootstrap-server {_bootstrap(settings)}`"
        )
        return f"{look} from this machine; else correct realm.bootstrap and realm.client; then try again"
    if cause in ("unavailable", "indeterminate"):
        return "start it, or correct realm in the configuration; then try again"
    return "these are the log's own words: mend what they name, then try again"


def _bootstrap(settings: Settings) -> str:
    return str(getattr(settings.realm, "bootstrap", ""))
