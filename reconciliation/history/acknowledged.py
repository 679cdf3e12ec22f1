"""What operators have acknowledged: findings that are known and accepted, each until a day, by a name, for a reason.

A YAML file, made to be kept in git: an entry a finding, a line a fact.

    acknowledged:
      P1-5a31c8e07f:
        until: 2026-12-31
        by: ann
        reason: lost with the disk of 3 May, INC-4711
        what: lost write (P1) in orders
        messages: 3
        of:
          - "17-19"

`of` and `messages` are what was acknowledged (`Members`): what a finding has beside those counts again. `what` is for
readers.
Errors: `SettingsError` with every problem as FILE:LINE: what is wrong; what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import yaml

from reconciliation.history.cause import ID
from reconciliation.history.members import PARTS_MAX, Members
from reconciliation.model.settings import SettingsError

FILE = "acknowledged.yaml"
TEXT_MAX = 500
"""Characters of a reason or a name."""
_TOP = "acknowledged"
_REQUIRED = ("until", "by", "reason", "messages", "of")
_KEYS = (*_REQUIRED, "what")
_COMMAND = (
    "realmgate reconcile --acknowledge ID --until YYYY-MM-DD --by NAME --reason TEXT --out DIR writes such entries"
)
_LINE = f"write a line of at most {TEXT_MAX} characters"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Holds to the end of the day `until`, UTC. `line`: where it begins; `last`: where it ends, counted from 1."""

    id: str
    until: date
    by: str
    reason: str
    members: Members
    line: int
    last: int


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What a file says. `file` is what an operator named; `column` is where its entries begin, 2 where there are none.
    `is_block`: entries can be added in lines of their own."""

    file: str
    entries: tuple[Acknowledgement, ...] = ()
    column: int = 2
    is_block: bool = True


NOTHING = Acknowledged(FILE)


def parse(content: bytes, file: str) -> Acknowledged:
    """Raises SettingsError."""
    reader = _Reader(file)
    acknowledged = reader.read(content)
    if reader.problems:
        raise SettingsError("\n".join(reader.problems))
    return acknowledged


def day_of(text: str) -> date:
    """Raises ValueError."""
    if not _DAY.fullmatch(text):
        raise ValueError(f"{text} is no day; write YYYY-MM-DD")
    return date.fromisoformat(text)


def line_of(text: str) -> str:
    """A name or a reason, as it is kept. Raises ValueError."""
    line = text.strip()
    if not line:
        raise ValueError("it is empty")
    if len(line) > TEXT_MAX or not line.isprintable():
        raise ValueError(f"it is no line of text of at most {TEXT_MAX} characters")
    return line


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[str] = []

    def read(self, content: bytes) -> Acknowledged:
        nothing = Acknowledged(self.file)
        try:
            root = yaml.compose(content.decode(), Loader=yaml.SafeLoader)
        except UnicodeDecodeError:
            self._problem(1, "it is not UTF-8", "restore it from version control")
            return nothing
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark is not None else 1
            self._problem(line, f"this is not YAML: {getattr(error, 'problem', error)}", "mend it, or restore it")
            return nothing
        if root is None:
            return nothing
        keys = [key.value for key, _ in root.value] if isinstance(root, yaml.MappingNode) else None
        if keys != [_TOP]:
            line = root.start_mark.line + 1
            self._problem(line, f"the file has {_named(keys)}", f"write one key {_TOP}: with an entry for each finding")
            return nothing
        return self._entries(root.value[0][1])

    def _entries(self, node: Any) -> Acknowledged:
        if isinstance(node, yaml.ScalarNode) and node.value in ("", "null", "~"):
            return Acknowledged(self.file)
        if not isinstance(node, yaml.MappingNode):
            self._problem(node.start_mark.line + 1, f"{_TOP} is no mapping", _COMMAND)
            return Acknowledged(self.file)
        entries: dict[str, Acknowledgement] = {}
        for key, value in node.value:
            note = self._entry(key, value)
            if note is not None and note.id in entries:
                first = entries[note.id].line
                self._problem(note.line, f"{note.id} is acknowledged in line {first} already", "remove one of the two")
            elif note is not None:
                entries[note.id] = note
        column = node.value[0][0].start_mark.column if node.value else 2
        return Acknowledged(self.file, tuple(entries.values()), column, not node.flow_style)

    def _entry(self, key: Any, node: Any) -> Acknowledgement | None:
        line, before = key.start_mark.line + 1, len(self.problems)
        if not isinstance(key, yaml.ScalarNode) or not ID.fullmatch(key.value):
            self._problem(
                line,
                f"{getattr(key, 'value', 'this')} is no name of a finding",
                "write it as reports do, P1-5a31c8e07f",
            )
        if not isinstance(node, yaml.MappingNode):
            self._problem(line, f"an acknowledgement has the keys {', '.join(_REQUIRED)}", _COMMAND)
            return None
        values: dict[str, Any] = {}
        for name, value in node.value:
            at = name.start_mark.line + 1
            if name.value not in _KEYS:
                self._problem(at, f"{name.value} is not known here", f"write {', '.join(_KEYS)}")
            elif name.value in values:
                self._problem(at, f"{name.value} is there twice", "remove one of the two")
            else:
                values[name.value] = value
        missing = [name for name in _REQUIRED if name not in values]
        if missing:
            self._problem(line, f"{key.value} has no {', '.join(missing)}", _COMMAND)
            return None
        until = self._value(
            values["until"], day_of, "until is not a day", "write YYYY-MM-DD, the last day on which it holds"
        )
        by, reason = (
            self._value(values[name], line_of, f"{name} says nothing that can be shown", _LINE)
            for name in ("by", "reason")
        )
        members = self._members(values["of"], values["messages"])
        if until is None or by is None or reason is None or members is None or len(self.problems) > before:
            return None
        return Acknowledgement(key.value, until, by, reason, members, line, _last_line(node))

    def _members(self, node: Any, messages: Any) -> Members | None:
        count = self._value(messages, _number, "messages is no number", "write how many messages are acknowledged")
        parts = node.value if isinstance(node, yaml.SequenceNode) else None
        if (
            parts is None
            or not 0 < len(parts) <= PARTS_MAX
            or not all(isinstance(part, yaml.ScalarNode) for part in parts)
        ):
            self._problem(
                node.start_mark.line + 1,
                "of is no list of messages",
                "copy it from the record of a reconciliation, or remove the entry and acknowledge the finding again",
            )
            return None
        if count is None:
            return None
        try:
            return Members.of([part.value for part in parts], count)
        except ValueError as error:
            self._problem(
                node.start_mark.line + 1,
                f"messages and of do not agree: {error}",
                "remove the entry and acknowledge the finding again",
            )
            return None

    def _value(self, node: Any, read: Callable[[str], Any], wrong: str, remedy: str) -> Any:
        try:
            if not isinstance(node, yaml.ScalarNode):
                raise ValueError("it is no single value")
            return read(node.value)
        except ValueError as error:
            self._problem(node.start_mark.line + 1, f"{wrong} ({error})", remedy)
            return None

    def _problem(self, line: int, wrong: str, remedy: str) -> None:
        self.problems.append(f"{self.file}:{line}: {wrong}; {remedy}")


def _number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(f"{text} is not 1 or more")
    return int(text)


def _named(keys: list[Any] | None) -> str:
    return "no keys" if keys is None else f"the keys {', '.join(map(str, keys))}"


def _last_line(node: Any) -> int:
    """Of the last value inside: a block ends where the next one begins, with all comments between."""
    if isinstance(node, yaml.MappingNode) and not node.flow_style and node.value:
        return max(_last_line(value) for _, value in node.value)
    if isinstance(node, yaml.SequenceNode) and not node.flow_style and node.value:
        return max(map(_last_line, node.value))
    end = node.end_mark
    return int(end.line) + (0 if end.column == 0 and end.line > node.start_mark.line else 1)
