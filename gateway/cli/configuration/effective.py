"""A configuration with every default filled in, and where each value comes from: a line of the file, or the default.

What is written for people is itself a configuration that means the same. No secret is shown: it stands in no
configuration that can be read, and what is shown is its source (`{file: PATH}`, `{env: NAME}`), as the file names it.
Errors: `SettingsProblems`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from gateway.config.field import Field
from gateway.config.fields import FIELDS
from gateway.config.settings import Settings, load_settings
from mappings.language.yaml_lines import Node, load_document

_COLUMN: Final = 50
"""Where the comments begin, if the values leave room."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key under its sections. `value`: as JSON; None: none. `place`: file and line; None: it is the default."""

    path: tuple[str, ...]
    value: Any
    place: tuple[str, int] | None
    active: bool = True
    """False: its section is not written, so that nothing uses it."""

    @property
    def is_set(self) -> bool:
        return self.value is not None and self.active

    def document(self) -> dict[str, Any]:
        file, line = self.place or (None, None)
        return {
            "key": ".".join(self.path),
            "value": self.value,
            "default": self.place is None,
            "file": file,
            "line": line,
        }


def entries(path: Path) -> list[Entry]:
    """Of every key that this kind of realm has, in the order of docs/configuration.md. Raises SettingsProblems."""
    settings = load_settings(path)
    root = load_document(path)[0].root
    kind = root["realm"]["kind"].value
    return [entry for field in FIELDS if field.only in ("", kind) for entry in _entries(field, root, settings)]


def _entries(field: Field, root: Node, settings: Settings) -> Iterator[Entry]:
    path = tuple(field.key.split("."))
    section = root if not field.section else root.get(field.section)
    written = section.get(field.name) if section is not None else None
    if written is None:
        active = field.section != "tls" or section is not None
        yield Entry(path, _default(field, settings), None, active)
    elif field.key == "realm.client":
        for name, value in written.items():
            yield Entry((*path, name), value.value, (value.file, written.key_line(name)))
    else:
        yield Entry(path, written.value, (written.file, written.line))


def _default(field: Field, settings: Settings) -> Any:
    if field.key == "security.bare_amqp":  # what it is depends on security.sasl
        return settings.security.bare_amqp
    return list(field.default) if isinstance(field.default, tuple) else field.default


def write_entries(entries: Sequence[Entry], out: TextIO) -> None:
    """As YAML, each line with its source in a comment. A key without a value is a comment as a whole."""
    open_sections: tuple[str, ...] = ()
    for entry in entries:
        *sections, key = entry.path
        for depth in range(len(sections)):
            section = tuple(sections[: depth + 1])
            if section != open_sections[: depth + 1]:
                mark = "" if any(leaf.is_set and leaf.path[: depth + 1] == section for leaf in entries) else "# "
                out.write(f"{'  ' * depth}{mark}{section[-1]}:\n")
        open_sections = tuple(sections)
        mark = "" if entry.is_set else "# "
        line = f"{'  ' * len(sections)}{mark}{key}: {_shown(entry.value)}"
        source = "default" if entry.place is None else f"{entry.place[0]}:{entry.place[1]}"
        out.write(f"{line.ljust(_COLUMN)}  # {source}\n")


def _shown(value: Any) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
