"""The record of one reconciliation: its verdict, what it found, its books, and how far its sources went.

JSON, in one file, with a digest of itself: a record that was changed or cut is seen. Microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from reconciliation.history.cause import Cause

VERSION = 1
FINDINGS_MAX = 1_000
"""So many findings are in a record; of more, how many there were."""
LINES_MAX = 100
"""So many lines of a list that has no other bound."""
_FLAT = ("at_us", "verdict", "sentence", "complete", "window", "realm", "classes", "books", "sources", "errors")


@dataclass(frozen=True, slots=True)
class Record:
    """`realm`: ids of the topics by which it is known. `classes`: messages by class, with those that are no anomaly.
    `findings`: the anomalies; `left_out`: how many more there were. `books`: totals by name, `difference` and
    `unseen` among them, and `lines`, those that do not close, by what they are of. `sources`: offsets by topic, what
    could not be read, runs by state. `errors`: deliveries by AMQP condition and native code. `versions` and `took_s`
    are to read only."""

    at_us: int
    verdict: str
    sentence: str
    complete: bool
    window: dict[str, Any]
    realm: dict[str, str]
    classes: dict[str, int]
    findings: Sequence[Cause]
    books: dict[str, Any]
    sources: dict[str, Any]
    errors: Sequence[dict[str, Any]] = ()
    left_out: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    took_s: float = 0.0

    @property
    def messages(self) -> int:
        return sum(finding.count for finding in self.findings)

    @property
    def open(self) -> int:
        """Messages of anomalies that are not acknowledged."""
        return sum(finding.open for finding in self.findings)

    def is_of(self, other: Record) -> bool:
        """Can the two be compared: the same window of one realm? A realm of which one topic was made again is the
        same still."""
        shared = self.realm.keys() & other.realm.keys()
        alike = not shared or any(self.realm[name] == other.realm[name] for name in shared)
        return alike and self.window == other.window

    def as_json(self) -> bytes:
        content: dict[str, Any] = {name: getattr(self, name) for name in _FLAT}
        kept = self.findings[:FINDINGS_MAX]
        content |= {
            "v": VERSION,
            "findings": [finding.as_json() for finding in kept],
            "left_out": self.left_out + len(self.findings) - len(kept),
            "errors": list(self.errors[:LINES_MAX]),
            "versions": self.versions,
            "took_s": round(self.took_s, 1),
        }
        content["digest"] = _digest(content)
        return orjson.dumps(content, option=orjson.OPT_INDENT_2)


def record_of(content: bytes) -> Record:
    """What `as_json` has written. Raises ValueError, in words, for anything else."""
    try:
        body = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"it is no JSON ({error})") from error
    if not isinstance(body, dict):
        raise ValueError("it is no record of a reconciliation")
    if body.get("v") != VERSION:
        raise ValueError(f"it is of version {body.get('v')}, and this release reads version {VERSION}")
    digest = body.pop("digest", None)
    if digest != _digest(body):
        raise ValueError("its content does not have the digest that stands in it: it was cut or changed")
    try:
        flat = {name: body[name] for name in _FLAT}
        findings = [Cause.of(finding) for finding in body["findings"]]
        rest = {name: body[name] for name in ("left_out", "versions", "took_s")}
        return Record(**flat, findings=findings, **rest)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"it is no record of a reconciliation ({error!r})") from error


def _digest(content: Mapping[str, Any]) -> str:
    return blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=16).hexdigest()
