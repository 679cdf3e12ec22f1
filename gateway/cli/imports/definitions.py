"""RabbitMQ's export, `rabbitmqctl export_definitions`: one JSON object of lists of objects.

Errors: `ImportProblem`, which names the list, the object and its field.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from gateway.cli.imports.imported import ImportProblem, read_octets

_SIZE_MAX: Final = 64 << 20


class Definition(dict[str, Any]):
    """One object. A field that must be there and is not is an `ImportProblem`."""

    def __init__(self, fields: dict[str, Any], place: str) -> None:
        super().__init__(fields)
        self._place = place

    def __missing__(self, field: str) -> Any:
        raise ImportProblem(f"{self._place} has no {field}")

    def words(self, field: str) -> dict[str, Any]:
        """An object within; empty where there is none. RabbitMQ writes an empty one as [], too."""
        value = self.get(field) or {}
        if not isinstance(value, dict):
            raise ImportProblem(f"{self._place}: {field} is no object")
        return value

    def number(self, field: str) -> int:
        """0: there is none."""
        value = self.get(field) or 0
        if not isinstance(value, int):
            raise ImportProblem(f"{self._place}: {field} is no number")
        return value


class Definitions:
    """Of one virtual host of a file."""

    def __init__(self, path: Path, vhost: str) -> None:
        self._path, self._vhost = path, vhost
        self._root = _read(path)
        self.vhosts = [str(host["name"]) for host in self.all("vhosts")]
        self.known = vhost in self.vhosts or (not self.vhosts and self._root.get("vhost", vhost) == vhost)

    def all(self, key: str) -> list[Definition]:
        """Of every virtual host."""
        value = self._root.get(key) or []
        if not isinstance(value, list):
            raise ImportProblem(f"{self._path}: {key} is no list")
        return [self._definition(key, at, entry) for at, entry in enumerate(value)]

    def _definition(self, key: str, at: int, fields: object) -> Definition:
        place = f"{self._path}: {key}[{at}]"
        if not isinstance(fields, dict):
            raise ImportProblem(f"{place} is no object")
        return Definition(fields, place)

    def of(self, key: str) -> list[Definition]:
        return [entry for entry in self.all(key) if entry.get("vhost", self._vhost) == self._vhost]

    def elsewhere(self) -> dict[str, int]:
        """Queues of other virtual hosts, by host."""
        counts: dict[str, int] = {}
        for queue in self.all("queues"):
            if (name := str(queue.get("vhost", self._vhost))) != self._vhost:
                counts[name] = counts.get(name, 0) + 1
        return counts


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(read_octets(path, _SIZE_MAX))
    except (ValueError, RecursionError) as error:
        raise ImportProblem(f"{path}: it is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise ImportProblem(f"{path}: it is no object: export it by rabbitmqctl export_definitions")
    if "queues" not in document or "exchanges" not in document:
        raise ImportProblem(f"{path}: there are no queues and exchanges: export it by rabbitmqctl export_definitions")
    return document
