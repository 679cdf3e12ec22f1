"""The tables that a realm has kept, and the reasons of their rules. Source: docs/records.md, *Expanded tables*.

Blocks; raises LogError.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from mappings import TableSet
from mappings.compiler.table_set import Because, digest_of
from native_backend.log.port import Log

_AT_ONCE = 1000  # records read at a time


def stored_tables(log: Log, topic: str, digest: str) -> TableSet | None:
    """With the reasons of their rules; None: they are not kept, or were changed."""
    for document in documents(log, topic):
        if document["digest"] == digest and digest_of(document) == digest:
            return TableSet.read(document, stored_because(log, topic, digest))
    return None


def stored_because(log: Log, topic: str, digest: str) -> Because:
    """Empty: an earlier release has stored these tables."""
    newest: Because = {}
    for document in documents(log, topic):
        if document.get("of") == digest and digest_of(document) == document["digest"]:
            newest = document["because"]
    return newest


def documents(log: Log, topic: str) -> Iterator[dict[str, Any]]:
    at, end = log.control.bounds(topic, 0)
    while at < end:
        records = log.control.read_range(topic, 0, at, _AT_ONCE)
        yield from (orjson.loads(value) for value in records.values if value is not None)
        at = records.next
