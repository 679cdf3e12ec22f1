"""The gateway's configuration file, as far as the reconciliation needs it: its values with their lines, and secrets
from where the file names them. The gateway itself is strict about all of it.

Source: docs/configuration.md. Errors: problems, each FILE:LINE: what is wrong; what to write instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Written:
    """One value. `content`: a mapping of such values, or text, a number, a boolean; None for anything else."""

    file: str
    line: int
    content: Any

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.content, dict)

    def get(self, key: str) -> Written | None:
        return self.content.get(key) if isinstance(self.content, dict) else None

    def items(self) -> Iterator[tuple[str, Written]]:
        yield from self.content.items() if isinstance(self.content, dict) else ()

    def problem(self, message: str, remedy: str) -> str:
        return f"{self.file}:{self.line}: {message}; {remedy}"


def load(file: Path) -> tuple[Written, list[str]]:
    """The whole file, an empty mapping when it cannot be read; and what keeps it from being read."""
    empty = Written(str(file), 1, {})
    try:
        root = yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        return empty, [empty.problem(f"the file cannot be read: {reason}", "name the gateway's configuration file")]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = Written(str(file), mark.line + 1 if mark is not None else 1, None)
        return empty, [at.problem(f"this is not YAML: {getattr(error, 'problem', error)}", "mend it")]
    return (empty if root is None else _written(str(file), root)), []


def _written(file: str, node: Any) -> Written:
    line = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        return Written(file, line, {str(key.value): _written(file, value) for key, value in node.value})
    if not isinstance(node, yaml.ScalarNode):
        return Written(file, line, None)
    kind, text = node.tag.rpartition(":")[2], node.value
    if kind == "bool":
        return Written(file, line, text.lower() in ("true", "yes", "on"))
    if kind == "int" and text.lstrip("-").isdecimal():
        return Written(file, line, int(text))
    return Written(file, line, None if kind == "null" else text)


def client_settings(written: Written | None, base: Path, problems: list[str]) -> dict[str, str]:
    """The Kafka client's settings by librdkafka's names. Files (`*.location`) are relative to `base`; a mapping names
    the file or environment variable that holds the value."""
    settings = {}
    for name, value in written.items() if written is not None else ():
        if value.is_mapping:
            content = _elsewhere(f"realm.client.{name}", value, base, problems)
        elif name.endswith(".location") and isinstance(value.content, str) and value.content != "probe":
            content = str(base / value.content)
        else:
            content = None if value.content is None else str(value.content)
        if content is not None:
            settings[name] = content
    return settings


def _elsewhere(key: str, written: Written, base: Path, problems: list[str]) -> str | None:
    """The value that `{file: PATH}` or `{env: NAME}` names; None, with a problem, where there is none."""
    for source, named in written.items():
        content = ""
        if source == "env":
            content = os.environ.get(str(named.content), "")
        elif source == "file":
            try:
                content = (base / str(named.content)).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                problems.append(
                    named.problem(f"{key}: {base / str(named.content)} cannot be read ({error})", "name another")
                )
                return None
            content = content.removesuffix("\n").removesuffix("\r")
        if content:
            return content
        problems.append(
            named.problem(f"{key}: {source} {named.content} holds no value", "write {file: PATH} or {env: NAME}")
        )
    return None
