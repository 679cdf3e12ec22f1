"""What a client notes of its own messages, as docs/client-ledgers.md says it: one line of JSON a step.

    with ClientLedger(directory, "shop-1", container="shop") as ledger:
        ledger.sent("orders", "m-1", b"text"); ...; ledger.told("m-1", "accepted")

What is sent and settled is noted before that is done, what is told and received behind it.
"""

from __future__ import annotations

import json
import time
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, Self


def body_of(octets: bytes) -> str:
    """Of the octets of a data section, or of a value's text in UTF-8."""
    return f"{zlib.crc32(octets):08x}"


class ClientLedger:
    """One connection's. `closed` is noted at the end, unless an error ends it."""

    def __init__(self, directory: Path, client: str, container: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._client, self._file = client, (directory / f"{client}.jsonl").open("a", buffering=1)
        self.note("opened", container=container)

    def note(self, what: str, **fields: Any) -> None:
        line = {"v": 1, "what": what, "client": self._client, "at": time.time_ns() // 1000, **fields}
        self._file.write(json.dumps({name: value for name, value in line.items() if value is not None}) + "\n")

    def sent(self, node: str, name: str, body: bytes, transaction: str | None = None) -> None:
        self.note("sent", node=node, id=name, body=body_of(body), transaction=transaction)

    def told(self, name: str, outcome: str) -> None:
        self.note("told", id=name, outcome=outcome)

    def received(self, tag: str, name: str, body: bytes) -> None:
        self.note("received", tag=tag, id=name, body=body_of(body))

    def settled(self, tag: str, outcome: str) -> None:
        self.note("settled", tag=tag, outcome=outcome)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.note("closed")
        self._file.close()
