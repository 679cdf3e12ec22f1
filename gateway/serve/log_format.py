"""The lines of the log on stderr: text, or a JSON object in each line. Times are UTC.

JSON has `at`, `level`, `logger`, `text`; `event`, one of a few words, where the line is about an event; its facts
(`run`, `user`, `container`, `address`, `node`, ...); `traceback`. A caller passes `extra=about("event", name=fact)`.
"""

from __future__ import annotations

import logging
import sys
import time
from datetime import UTC, datetime
from typing import Final

import orjson

_TEXT: Final = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s"
_SECONDS: Final = "%Y-%m-%dT%H:%M:%S"


def use(log_format: str) -> None:
    """For the whole process. `log_format`: as in the configuration."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log_format == "json" else _text())
    logging.basicConfig(handlers=[handler], level=logging.INFO)


def _text() -> logging.Formatter:
    formatter = logging.Formatter(_TEXT, _SECONDS)
    formatter.converter = time.gmtime
    return formatter


class _Json(logging.Formatter):
    """One line for each record; what is no JSON is written as Python shows it."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"at": at, "level": record.levelname.lower(), "logger": record.name}
        line |= {name: value for name, value in getattr(record, "about", {}).items() if value not in (None, "")}
        line["text"] = record.getMessage()
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return orjson.dumps(line, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
