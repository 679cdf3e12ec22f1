"""The Kafka client's settings as an operator writes them, and where their secrets come from.

    client: {sasl.username: gateway, sasl.password: {file: gateway.password}, ssl.key.password: {env: KEY_PASSWORD}}

Files that a setting names (`ssl.ca.location`) are relative to the configuration. Any value may be the content of a file
(one trailing line end is not part of it) or of an environment variable; a secret must be. Neither the settings' repr
nor a problem shows a value that came so.
Errors: `Problem`s, each FILE:LINE.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mappings.language.yaml_lines import Node, Problem

Setting = str | int | bool
SECRETS: Final = frozenset(
    {"sasl.oauthbearer.client.secret", "sasl.password", "ssl.key.password", "ssl.key.pem", "ssl.keystore.password"}
)
_WRITE = "write {file: PATH} or {env: NAME}"
_NONE: Final[Mapping[str, Setting]] = {}
_SOURCES: Final = ("file", "env")


class ClientSettings(dict[str, Setting]):
    """Settings by librdkafka's names; what came from elsewhere is not shown."""

    def __init__(self, settings: Mapping[str, Setting] = _NONE, hidden: frozenset[str] = frozenset()) -> None:
        super().__init__(settings)
        self._hidden = hidden | SECRETS

    def __repr__(self) -> str:
        return repr({name: "(hidden)" if name in self._hidden else value for name, value in self.items()})

    __str__ = __repr__


def read_client(node: Node | None, base: Path, problems: list[Problem], key: str = "realm.client") -> ClientSettings:
    """A mapping that was written; `base` is the configuration's directory."""
    if node is None:
        return ClientSettings()
    settings: dict[str, Setting] = {}
    hidden = set()
    for name, value in node.items():
        if value.is_mapping:
            content = elsewhere(f"{key}.{name}", value, base, problems)
            hidden.add(name)
            if content is not None:
                settings[name] = content
        elif name in SECRETS:
            problems.append(value.problem(f"{key}.{name} is a secret and stands in the configuration", _WRITE))
        elif name.endswith(".location") and isinstance(value.value, str) and value.value != "probe":
            settings[name] = str(base / value.value)
            _read_location(f"{key}.{name}", value, base / value.value, problems)
        elif isinstance(value.value, str | int | bool):
            settings[name] = value.value
        else:
            problems.append(value.problem(f"{key}.{name} must be one value, not {value.kind}", 'write a text "..."'))
    return ClientSettings(settings, frozenset(hidden))


def _read_location(key: str, node: Node, path: Path, problems: list[Problem]) -> None:
    """A file, or a directory of them."""
    if not path.exists():
        problems.append(node.problem(f"{key}: there is no {path}", "name a file that there is"))
    elif not os.access(path, os.R_OK):
        problems.append(node.problem(f"{key}: {path} cannot be read: Permission denied", "name a readable file"))


def elsewhere(key: str, node: Node, base: Path, problems: list[Problem]) -> str | None:
    """The value that `{file: PATH}` or `{env: NAME}` names; None, with a problem, where there is none."""
    written = list(node.items()) if node.is_mapping else []
    if len(written) != 1 or written[0][0] not in _SOURCES or written[0][1].kind != "text" or not written[0][1].value:
        problems.append(node.problem(f"{key} names no source", _WRITE))
        return None
    source, name = written[0][0], str(written[0][1].value)
    if source == "env":
        content = os.environ.get(name)
        if not content:
            problems.append(node.problem(f"{key}: the environment has no {name}", "set it, or name another"))
        return content or None
    path = base / name
    try:
        content = path.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        problems.append(node.problem(f"{key}: {path} cannot be read: {reason}", "name a readable file"))
        return None
    if not content:
        problems.append(node.problem(f"{key}: {path} is empty", "write the value into it"))
    return content or None
