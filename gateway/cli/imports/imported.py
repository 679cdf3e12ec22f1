"""What an import finds: nodes with their properties and grants, grants of the realm, and notes of what is not carried
over. Written as the YAML that `realmgate node apply` takes.

Properties are the words of `node set`. A note says where, what, and what to do; several lines of one kind are one note.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gateway.cli.node_export import yaml_text
from native_backend.nodes.words import NodeKind

Allowed = dict[str, set[str]]
"""Operations by WHO."""


class ImportProblem(Exception):
    """The file cannot be read; says why."""


@dataclass(slots=True)
class ImportedNode:
    name: str
    kind: NodeKind
    properties: dict[str, str] = field(default_factory=dict)
    acl: Allowed = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Note:
    """`what` is not carried over from these lines, 0 where the file has none; `remedy`: what to do."""

    what: str
    remedy: str
    lines: tuple[int, ...]

    def text(self, file: str) -> str:
        place = ",".join(str(line) for line in self.lines if line)
        return f"{file}:{place}{': ' if place else ' '}{self.what}; {self.remedy}"


@dataclass(slots=True)
class Imported:
    """`product`: the broker's name."""

    product: str
    nodes: dict[str, ImportedNode] = field(default_factory=dict)
    realm: Allowed = field(default_factory=dict)
    _notes: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    @property
    def notes(self) -> list[Note]:
        listed = [Note(what, remedy, tuple(sorted(set(lines)))) for (what, remedy), lines in self._notes.items()]
        return sorted(listed, key=lambda note: note.lines)

    def note(self, line: int, what: str, remedy: str) -> None:
        self._notes.setdefault((what, remedy), []).append(line)

    def node(self, name: str, kind: NodeKind) -> ImportedNode:
        """The node of that name; made if it is not there."""
        return self.nodes.setdefault(name, ImportedNode(name, kind))

    def written(self, file: str) -> str:
        """YAML, sorted by name."""
        lines = [
            f"# Made by realmgate import from {file} of {self.product}. Look at it, then: realmgate node apply FILE"
        ]
        if self.realm:
            lines += ["- realm:", "    acl:", *_grants(self.realm, "      ")]
        for node in sorted(self.nodes.values(), key=lambda entry: entry.name):
            lines += [f"- name: {yaml_text(node.name)}", f"  kind: {node.kind}"]
            lines += [
                f"  {key}: {yaml_text(value) if key == 'dead-letter' else value}"
                for key, value in node.properties.items()
            ]
            if node.acl:
                lines += ["  acl:", *_grants(node.acl, "    ")]
        if not self.nodes and not self.realm:
            lines.append("[]")
        return "".join(f"{line}\n" for line in lines)


def _grants(allowed: Allowed, indent: str) -> Iterator[str]:
    for who, operations in sorted(allowed.items()):
        yield f"{indent}- {{who: {yaml_text(who)}, allow: [{', '.join(sorted(operations))}]}}"


def read_octets(path: Path, size_max: int) -> bytes:
    """Of a file of at most so many octets. Raises ImportProblem."""
    try:
        size = path.stat().st_size
        if size > size_max:
            raise ImportProblem(f"{path}: {size} octets are more than {size_max}: it is no configuration")
        return path.read_bytes()
    except OSError as error:
        raise ImportProblem(f"{path}: {error.strerror or error}") from None
