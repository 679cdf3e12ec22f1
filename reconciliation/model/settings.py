"""Where the realm is, and how old its evidence gets: the `realm` part of the gateway's configuration file and
`limits.evidence_s`, nothing else of it.

`path` is relative to the file. Errors: `SettingsError` with every problem as FILE:LINE: text.
Source: issue 3, docs/configuration.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from mappings.language.yaml_lines import Node, Problem, load_document
from native_backend.limits import RealmLimits
from native_backend.log.client_settings import read_client

PREFIX_DEFAULT = "um"
_KINDS = ("embedded", "kafka")
_EVIDENCE_S = RealmLimits().evidence_s
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
    document, problems = load_document(file)
    realm = None if problems else _realm(document.root.get("realm"), document.root, file.resolve().parent, problems)
    evidence_s = _evidence_s(document.root.get("limits"), problems)
    if realm is None or problems:
        raise SettingsError("\n".join(str(problem) for problem in problems))
    return replace(realm, evidence_s=evidence_s)


def _evidence_s(limits: Node | None, problems: list[Problem]) -> float:
    node = limits.get("evidence_s") if limits is not None and limits.is_mapping else None
    if node is None:
        return _EVIDENCE_S
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _EVIDENCE_MAX_S:
        wanted = f"write a whole number from 0 to {_EVIDENCE_MAX_S}"
        problems.append(node.problem(f"limits.evidence_s is {value}", wanted))
        return _EVIDENCE_S
    return float(value)


def _realm(node: Node | None, root: Node, base: Path, problems: list[Problem]) -> Realm | None:
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
    client = read_client(written if written is not None and written.is_mapping else None, base, problems)
    if problems:
        return None
    return Realm(kind, prefix, bootstrap=place, client={name: str(value) for name, value in client.items()})


def _text(node: Node, key: str) -> str:
    child = node.get(key)
    return child.value if child is not None and isinstance(child.value, str) else ""
