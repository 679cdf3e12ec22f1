"""Where the realm is, and how old its evidence gets: the `realm` part of the gateway's configuration file and
`limits.evidence_s`, nothing else of it.

`path` is relative to the file. Errors: `SettingsError` with every problem as FILE:LINE: text.
Source: issue 3, docs/configuration.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from reconciliation.model.config_file import Written, client_settings, load

PREFIX_DEFAULT = "um"
_KINDS = ("embedded", "kafka")
_EVIDENCE_S = 14 * 86_400.0
"""What `limits.evidence_s` is when it is not written."""
_EVIDENCE_MAX_S = 2**31 - 1


class SettingsError(Exception):
    """The configuration cannot be used; the text has one line for each problem."""


@dataclass(frozen=True, slots=True)
class Realm:
    """`path` is set for an embedded realm, `bootstrap` and `client` (the gateway's librdkafka settings) for one on
    Kafka. `evidence_s`: younger outcome records are not trimmed."""

    kind: str
    prefix: str
    path: Path | None = None
    bootstrap: str = ""
    client: dict[str, str] = field(default_factory=dict, repr=False)  # it holds secrets
    evidence_s: float = _EVIDENCE_S


def load_realm(file: Path) -> Realm:
    root, problems = load(file)
    realm = None if problems else _realm(root.get("realm"), root, file.resolve().parent, problems)
    evidence_s = _evidence_s(root.get("limits"), problems)
    if realm is None or problems:
        raise SettingsError("\n".join(problems))
    return replace(realm, evidence_s=evidence_s)


def _evidence_s(limits: Written | None, problems: list[str]) -> float:
    node = limits.get("evidence_s") if limits is not None and limits.is_mapping else None
    if node is None:
        return _EVIDENCE_S
    value = node.content
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _EVIDENCE_MAX_S:
        wanted = f"write a whole number from 0 to {_EVIDENCE_MAX_S}"
        problems.append(node.problem(f"limits.evidence_s is {value}", wanted))
        return _EVIDENCE_S
    return float(value)


def _realm(node: Written | None, root: Written, base: Path, problems: list[str]) -> Realm | None:
    if node is None or not node.is_mapping:
        problems.append((node or root).problem("realm is missing", "write realm: {kind: embedded, path: var/realm}"))
        return None
    kind = _text(node, "kind")
    prefix = _text(node, "prefix") or PREFIX_DEFAULT
    if kind not in _KINDS:
        problems.append(node.problem(f"realm.kind is {kind or 'missing'}", "write kind: embedded or kind: kafka"))
        return None
    wanted, example = (
        ("path", "path: var/realm") if kind == "embedded" else ("bootstrap", 'bootstrap: "127.0.0.1:9092"')
    )
    place = _text(node, wanted)
    if not place:
        problems.append(node.problem(f"realm.{wanted} is missing", f"write {example}"))
        return None
    if kind == "embedded":
        return Realm(kind, prefix, path=base / place)
    written = node.get("client")
    client = client_settings(written, base, problems)
    return None if problems else Realm(kind, prefix, bootstrap=place, client=client)


def _text(node: Written, key: str) -> str:
    child = node.get(key)
    return child.content if child is not None and isinstance(child.content, str) else ""
