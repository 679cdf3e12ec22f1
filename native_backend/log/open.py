"""The drivers of the log port, and how to open one. Each is imported only when it is asked for: the embedded realm
needs no Kafka client.

May import: the standard library, `native_backend.log`, `native_backend.retrying`, the drivers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from native_backend.log import Log

if TYPE_CHECKING:
    from native_backend.retrying import Retries  # tenacity takes its time; commands that open no log need none


def open_embedded(path: Path) -> Log:
    """The log in the directory `path`, made when it is not there. Raises `LogError` or `sqlite3.Error`."""
    from native_backend.logs.sqlite.driver import SqliteLog

    return SqliteLog(path, wall_ms)


def wall_ms() -> int:
    """Milliseconds since 1970: the edge where records get their time."""
    return time.time_ns() // 1_000_000


def open_kafka(bootstrap: str, client: Mapping[str, str | int | float | bool], retries: Retries | None = None) -> Log:
    """The log on the Kafka at `bootstrap`; `client` overrides librdkafka's settings. Connects at the first call."""
    from native_backend.logs.kafka.driver import KafkaLog

    return KafkaLog(bootstrap, client, retries)
