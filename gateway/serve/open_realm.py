"""Opening the realm: `serve` waits for a log that is not there yet, and as standby while another gateway owns it.

It logs what it waits for, once and then every 30 s. SIGTERM and SIGINT end the wait at once: nothing is open yet that
kill -9 could harm. Errors: `LogError` where waiting does not help: rights, formats, settings.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from types import FrameType

from gateway.admin.progress import Progress
from gateway.config.settings import Settings
from gateway.links.event_to_message import EventToMessage
from gateway.serve.open_log import open_log
from native_backend.clock import Clock
from native_backend.journal.lease import Owner
from native_backend.log.port import Failure, LogError
from native_backend.log.retry import Retries
from native_backend.log.worker import Workers
from native_backend.realm import Realm

_LOG = logging.getLogger("realmgate.opening")

RETRY_S = 1.0
REMIND_S = 30.0
_WAITED_FOR = ("unavailable", "indeterminate", "fenced")  # fenced: another gateway was faster


def open_realm(settings: Settings, run: str, clock: Clock, progress: Progress) -> Realm:
    """The realm that the configuration names, open. Blocks, whatever that takes; raises LogError."""
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, _end)
    retries = Retries()
    log, limits = open_log(settings, retries), settings.limits.realm
    prefix = settings.realm.prefix
    back = EventToMessage()
    workers, forms = Workers.threads(retries), (back.annotate, back.message)
    realm = Realm(log, prefix, run, clock, workers, limits, *forms, selecting=back.selecting)
    _open(realm, settings.realm.place, settings.security.kafka_acls, progress)
    return realm


def _open(realm: Realm, place: str, kafka_acls: bool, progress: Progress) -> None:
    def standby(owner: Owner) -> None:
        progress.state, progress.words = "standby", f"{owner} owns the realm"
        _LOG.warning("standby: %s; this gateway listens when that one ends", progress.words)

    _LOG.info("opening %s", place)
    last, told_s = "", 0.0
    while True:
        try:
            if kafka_acls:
                realm.authorizer.follow_access_lists()
            return realm.open(standby)
        except LogError as error:
            if error.failure.cause not in _WAITED_FOR:
                raise
            words = _words(error.failure, place)
            progress.state, progress.words = "opening", words
            if words != last or time.monotonic() - told_s > REMIND_S:
                last, told_s = words, time.monotonic()
                _LOG.warning("%s", words)
        time.sleep(RETRY_S)


def _words(failure: Failure, place: str) -> str:
    if failure.cause == "fenced":
        return f"{place}: {failure.detail}; trying again"
    return f"{place} does not answer ({failure.detail}); trying again until it does: start it, or correct realm"


def _end(number: int, _: FrameType | None) -> None:
    _LOG.info("%s before the realm was open: nothing to close", signal.Signals(number).name)
    logging.shutdown()
    os._exit(0)  # another thread may be in a call to the log: do not wait for it
