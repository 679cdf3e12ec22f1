"""Getting in: what the clients tell of refused credentials and failed handshakes, which no call's own error says.

librdkafka tells of a wrong password or an unknown authority by `error_cb` only; what was asked just times out (kafka.md
section 8). And it tells again at every attempt, so that words are counted and logged seldom. Called from any client's
thread.
"""

from __future__ import annotations

import logging
import time
from collections import Counter

from confluent_kafka import KafkaError

from native_backend.log.port import Failure

_LOG = logging.getLogger(__name__)
_REFUSALS = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)
FRESH_S = 10.0  # a client that is refused tries again several times a second
QUIET_S = 30.0  # between two lines about one kind of error


class LoginErrors:
    """One log's; asked when a call fails for a reason that may not be its own."""

    def __init__(self) -> None:
        self._refusal: Failure | None = None
        self._refused_s = 0.0
        self._told_s: dict[str, float] = {}
        self._untold: Counter[str] = Counter()

    def on_error(self, error: KafkaError) -> None:
        """`error_cb` of every client. Completions report what fails; this is for the operator's log."""
        now_s = time.monotonic()
        if error.code() in _REFUSALS or (error.code() == KafkaError._SSL and "certificate" in error.str()):
            self._refusal, self._refused_s = Failure("refused", error.str(), error.name()), now_s
        name = error.name()
        if now_s - self._told_s.get(name, -QUIET_S) < QUIET_S:
            self._untold[name] += 1
            return
        more = self._untold.pop(name, 0)
        self._told_s[name] = now_s
        _LOG.warning("kafka: %s: %s%s", name, error.str(), f" (and {more} more such since)" if more else "")

    @property
    def refusal(self) -> Failure | None:
        """Why no login succeeds, if the brokers said so a moment ago."""
        return self._refusal if time.monotonic() - self._refused_s < FRESH_S else None

    def explained(self, failure: Failure) -> Failure:
        """The refusal, where a call could not be carried out because of it."""
        return (self.refusal or failure) if failure.cause in ("unavailable", "indeterminate") else failure


def silence_client_log() -> None:
    """kafka-python logs what its exceptions say, at every attempt; librdkafka logs what `error_cb` gets."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    logging.getLogger("librdkafka").addFilter(_not_told_elsewhere)


def _not_told_elsewhere(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("FAIL ")
