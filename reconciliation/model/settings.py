"""Where the realm is: the `realm` part of the gateway's configuration file, and nothing else of it.

`path` is relative to the file. Errors: `SettingsError` with every problem as FILE:LINE: text.
Source: issue 3, docs/configuration.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mappings.language.yaml_lines import Node, Problem, load_document
from native_backend.log.client_settings import read_client

PREFIX_DEFAULT = "um"
_KINDS = ("embedded", "kafka")


class SettingsError(Exception):
    """The configuration cannot be used; the text has one line for each problem."""


@dataclass(frozen=True, slots=True)
class Realm:
    """`path` is set for an embedded realm, `bootstrap` and `client` (the gateway's librdkafka settings) for one on
    Kafka."""

    kind: str
    prefix: str
    path: Path | None = None
    bootstrap: str = ""
    client: dict[str, str] = field(default_factory=dict, repr=False)  # it holds secrets


def load_realm(file: Path) -> Realm:
    document, problems = load_document(file)
    realm = None if problems else _realm(document.root.get("realm"), document.root, file.resolve().parent, problems)
    if realm is None:
        raise SettingsError("\n".join(str(problem) for problem in problems))
    return realm


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
