"""The drivers of the log port, and how to open one. Each is imported only when it is asked for: the embedded realm
needs no Kafka client.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from native_backend.log.port import Log

if TYPE_CHECKING:
    from native_backend.log.retry import Retries  # tenacity takes its time; commands that open no log need none

EMBEDDED_FILE = "realm.sqlite"  # in the directory of an embedded realm


def open_embedded(path: Path) -> Log:
    """The log in the directory `path`, made when it is not there. Raises `LogError` or `sqlite3.Error`."""
    from native_backend.log.sqlite.driver import SqliteLog

    return SqliteLog(path, wall_ms)


def wall_ms() -> int:
    """Milliseconds since 1970: the edge where records get their time."""
    return time.time_ns() // 1_000_000


def wrong_kafka_settings(client: Mapping[str, str | int | float | bool]) -> dict[str, tuple[str, str]]:
    """By name, what is wrong with settings of the client, and what to do; connects to nothing."""
    from native_backend.log.kafka.checking import wrong_settings

    return wrong_settings(client)


def open_kafka(bootstrap: str, client: Mapping[str, str | int | float | bool], retries: Retries | None = None) -> Log:
    """The log on the Kafka at `bootstrap`; `client` overrides librdkafka's settings. Connects at the first call."""
    from native_backend.log.kafka.driver import KafkaLog

    return KafkaLog(bootstrap, client, retries)
