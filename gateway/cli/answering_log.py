"""The realm's log, opened for a command that has a `--timeout`: a log that does not answer within it is given up.

What a command reads then takes the time that it takes. Seconds. Errors: `LogError`, and those of `open_log`.
"""

from __future__ import annotations

from typing import Final

from gateway.cli.typed_numbers import ANSWER_S
from gateway.config.settings import EmbeddedRealm, Settings
from gateway.serve.open_log import open_log
from native_backend.journal.lease_records import lease_topic
from native_backend.log.port import FORMAT, Log, LogError

_CLOSE_S: Final = 0.2


def open_answering(settings: Settings, timeout_s: float = ANSWER_S) -> Log:
    """Blocks for so long at most."""
    log = open_log(settings)
    try:
        log.control.find_topics([lease_topic(settings.realm.prefix)], timeout_s)
    except BaseException:
        log.close(_CLOSE_S)
        raise
    return log


def remedy_of(error: LogError, settings: Settings) -> str:
    """What an operator does about it."""
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
