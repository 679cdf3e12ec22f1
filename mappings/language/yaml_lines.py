"""Strict YAML in which every value remembers the line that it was written on.

YAML reads `9.10` as 9.1, `on` as true, `12:30` as 750, and PyYAML takes the last of two equal keys without a word. Here
all of that is refused, and all problems of a file are collected, so that an operator mends a file once:

    document, problems = load_document(Path("realmgate.yaml"))
    root = document.root                     # a Node; an empty mapping when the file could not be read at all
    refuse_unknown_keys(root, ("listen", "realm"), problems)
    realm = root.get("realm")                # Node | None
    if realm is None:
        problems.append(root.problem("realm is missing", "write realm: {kind: embedded, path: var/realm}"))
    elif not realm.is_mapping:
        problems.append(realm.problem("realm must be a mapping", "write realm: {kind: embedded, path: var/realm}"))
    for name, node in root.items():          # node.line, node.kind, node.value (plain Python); root.key_line(name)
        ...
    for item in root["listen"].sequence():   # the Nodes of a sequence
        ...
    for problem in problems:
        print(problem)                       # FILE:LINE: what is wrong; what to write instead

Lines and columns count from 1. A value is one of: mapping, sequence, text, integer, boolean, null. Numbers are whole
(units are in the key's name). Nothing is raised for what a file says; `KeyError` and `TypeError` are a caller's
mistake.

Source: YAML 1.1 (what PyYAML's resolver would do with a bare word).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

Kind = Literal["mapping", "sequence", "text", "integer", "boolean", "null"]

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml is ten times as fast; same events, same marks

FILE_BYTES_MAX = 1_000_000
_DEPTH_MAX = 50
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_LOOKS_LIKE_A_NUMBER = re.compile(
    r"""[-+]?(?:
        0[bB][01_]+ | 0[oO][0-7_]+ | 0[xX][0-9a-fA-F_]+
      | [0-9][0-9_]*(?::[0-5]?[0-9])*(?:\.[0-9_]*)?       # 1_000, 010, 12:30, 9.10
      | [0-9][0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+
      | \.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?
      | \.(?:inf|Inf|INF|nan|NaN|NAN)
    ) | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt\ ].*)?       # a date
    """,
    re.VERBOSE,
)
_YAML_1_1_BOOLEAN = frozenset({"yes", "no", "on", "off", "y", "n", "true", "false"})


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong in a file. `remedy` says what to write instead, as a clause: `write "9.10" in quotes`."""

    file: str
    line: int
    message: str
    remedy: str = ""
    column: int = 1

    @property
    def place(self) -> str:
        """For editors, which jump to FILE:LINE:COLUMN."""
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def sentence(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.sentence}"


@dataclass(frozen=True, slots=True)
class Node:
    """One value of a file, with its line. Mappings keep the order and the lines of their keys."""

    file: str
    line: int
    content: Any  # dict[str, Node], list[Node], str, int, bool or None
    key_lines: dict[str, int] = field(default_factory=dict)
    column: int = 1
    key_columns: dict[str, int] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        content = self.content
        if isinstance(content, dict):
            return "mapping"
        if isinstance(content, list):
            return "sequence"
        if isinstance(content, str):
            return "text"
        if isinstance(content, bool):  # before int: a bool is one
            return "boolean"
        return "integer" if isinstance(content, int) else "null"

    @property
    def is_mapping(self) -> bool:
        return isinstance(self.content, dict)

    @property
    def is_sequence(self) -> bool:
        return isinstance(self.content, list)

    @property
    def value(self) -> Any:
        """Plain Python: dict, list, str, int, bool or None, without lines."""
        if isinstance(self.content, dict):
            return {key: node.value for key, node in self.content.items()}
        if isinstance(self.content, list):
            return [node.value for node in self.content]
        return self.content

    def mapping(self) -> dict[str, Node]:
        if not isinstance(self.content, dict):
            raise TypeError(f"{self.file}:{self.line} is a {self.kind}, no mapping")
        return self.content

    def sequence(self) -> list[Node]:
        if not isinstance(self.content, list):
            raise TypeError(f"{self.file}:{self.line} is a {self.kind}, no sequence")
        return self.content

    def __getitem__(self, key: str) -> Node:
        return self.mapping()[key]

    def get(self, key: str) -> Node | None:
        """The value under `key`; None when it is missing, or when this is no mapping."""
        return self.content.get(key) if isinstance(self.content, dict) else None

    def __contains__(self, key: str) -> bool:
        return isinstance(self.content, dict) and key in self.content

    def items(self) -> Iterator[tuple[str, Node]]:
        return iter(self.mapping().items())

    def key_line(self, key: str) -> int:
        return self.key_lines[key]

    def key_problem(self, key: str, message: str, remedy: str = "") -> Problem:
        """A problem with a key itself."""
        return Problem(self.file, self.key_lines[key], message, remedy, self.key_columns.get(key, 1))

    def problem(self, message: str, remedy: str = "") -> Problem:
        """A problem on this value's line."""
        return Problem(self.file, self.line, message, remedy, self.column)


@dataclass(frozen=True, slots=True)
class Document:
    """A file that was read: `root` is its outermost value. Not `readable` (its problems say why): `root` is empty."""

    file: str
    root: Node
    readable: bool = True


def load_document(path: Path) -> tuple[Document, list[Problem]]:
    """Read a file. The problems include one that says so when it cannot be read."""
    try:
        size = path.stat().st_size
        if size > FILE_BYTES_MAX:
            message = f"is {size:,} bytes long; that is too much"
            remedy = f"name a file of at most {FILE_BYTES_MAX:,} bytes"
            return _nothing(str(path)), [Problem(str(path), 1, message, remedy)]
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        return _nothing(str(path)), [Problem(str(path), 1, f"cannot be read: {error.strerror}", "name a readable file")]
    except UnicodeDecodeError as error:
        return _nothing(str(path)), [Problem(str(path), 1, f"is not UTF-8: {error.reason}", "save it as UTF-8")]
    return parse_document(text, str(path))


def parse_document(text: str, file: str) -> tuple[Document, list[Problem]]:
    """The same for a text that is already in memory; `file` is the name that problems carry."""
    composer = _Composer(file, text)
    root = composer.compose()
    problems = sorted(composer.problems, key=lambda problem: problem.line)
    return (Document(file, root) if root is not None else _nothing(file)), problems


def refuse_unknown_keys(node: Node, known: Collection[str], problems: list[Problem]) -> None:
    """Name every key of a mapping that is not `known`, with the likeliest intended one."""
    problems.extend(
        node.key_problem(key, f"unknown key {key}", suggest(key, known)) for key in node.mapping() if key not in known
    )


def suggest(word: str, known: Collection[str]) -> str:
    """What to write instead of a word that is not known."""
    if not known:
        return "remove it"
    near = difflib.get_close_matches(word, list(known), 1)
    return f"write {near[0]}" if near else f"write one of {', '.join(known)}"


def _nothing(file: str) -> Document:
    return Document(file, Node(file, 1, {}), readable=False)


class _Composer:
    """Builds nodes from PyYAML's parser events: there duplicate keys, anchors and tags still show."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.problems: list[Problem] = []
        self.depth = 0

    def compose(self) -> Node | None:
        loader = _Loader(self.text)
        try:
            return self._document(loader.get_event)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            words = " ".join(part for part in (error.context, error.problem) if part)
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            self._refuse((line, column), f"is not YAML: {words}", "mend the syntax here or just above")
        except yaml.YAMLError as error:
            message = f"is not YAML: {error}".replace("\n", " ")
            self._refuse((1, 1), message, "remove the characters that YAML does not allow")
        finally:
            loader.dispose()
        return None

    def _document(self, take: Callable[[], Any]) -> Node | None:
        take()  # stream start
        if isinstance(take(), yaml.StreamEndEvent):
            self._refuse((1, 1), "the file is empty", "write a mapping")
            return None
        root = self._node(take(), take)
        take()  # document end
        end = take()
        if not isinstance(end, yaml.StreamEndEvent):
            self._refuse(_at(end), "a second document begins here", "keep one document in a file: remove the ---")
        return root

    def _node(self, event: Any, take: Callable[[], Any]) -> Node:
        at = _at(event)
        if isinstance(event, yaml.AliasEvent):
            self._refuse(at, f"alias *{event.anchor} is not allowed", "write the value out")
            return Node(self.file, at[0], None, column=at[1])
        if event.anchor is not None:
            self._refuse(at, f"anchor &{event.anchor} is not allowed", "remove it and write the value out")
        if event.tag is not None:
            self._refuse(at, f"tag {event.tag} is not allowed", "remove the tag")
        if isinstance(event, yaml.ScalarEvent):
            return Node(self.file, at[0], self._scalar(event, at), column=at[1])
        if self.depth == _DEPTH_MAX:
            raise yaml.MarkedYAMLError(problem=f"more than {_DEPTH_MAX} levels deep", problem_mark=event.start_mark)
        self.depth += 1
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        node = self._mapping(at, take) if is_mapping else self._sequence(at, take)
        self.depth -= 1
        return node

    def _sequence(self, at: tuple[int, int], take: Callable[[], Any]) -> Node:
        items: list[Node] = []
        while not isinstance(event := take(), yaml.SequenceEndEvent):
            items.append(self._node(event, take))
        return Node(self.file, at[0], items, column=at[1])

    def _mapping(self, at: tuple[int, int], take: Callable[[], Any]) -> Node:
        items: dict[str, Node] = {}
        key_lines: dict[str, int] = {}
        key_columns: dict[str, int] = {}
        while not isinstance(event := take(), yaml.MappingEndEvent):
            key = self._key(event, take)
            value = self._node(take(), take)
            if key in key_lines:
                self._refuse(_at(event), f"key {key} is written twice (first on line {key_lines[key]})", "keep one")
            elif key is not None:
                items[key] = value
                key_lines[key], key_columns[key] = _at(event)
        return Node(self.file, at[0], items, key_lines, at[1], key_columns)

    def _key(self, event: Any, take: Callable[[], Any]) -> str | None:
        count = len(self.problems)
        node = self._node(event, take)
        if len(self.problems) > count:
            return None  # a problem is noted already
        if not isinstance(node.content, str):
            wrote = event.value if _plain(event) else f"a {node.kind}"
            remedy = f'write "{wrote}" in quotes' if _plain(event) else "write a word"
            self._refuse((node.line, node.column), f"key {wrote} is not a text", remedy)
            return None
        if node.content == "<<" and _plain(event):
            self._refuse((node.line, node.column), "merge key << is not allowed", "write the keys out")
            return None
        return node.content

    def _scalar(self, event: Any, at: tuple[int, int]) -> str | int | bool | None:
        text: str = event.value
        if not _plain(event):
            return text
        if text in ("true", "false"):
            return text == "true"
        if text == "null":
            return None
        if _INTEGER.fullmatch(text):
            return int(text)
        if text in ("", "~"):
            self._refuse(at, "no value is written here", "write null, [], {} or the value")
        elif text.lower() in _YAML_1_1_BOOLEAN or text.lower() == "null":
            meant = _meant(text)
            self._refuse(at, f"bare {text} is ambiguous", f'write {meant}, or "{text}" in quotes for the word')
        elif _LOOKS_LIKE_A_NUMBER.fullmatch(text):
            self._refuse(at, f"bare {text} is no whole number", f'write "{text}" in quotes, or a whole number')
        return text

    def _refuse(self, at: tuple[int, int], message: str, remedy: str) -> None:
        self.problems.append(Problem(self.file, at[0], message, remedy, at[1]))


def _meant(text: str) -> str:
    if text.lower() == "null":
        return "null"
    return "true" if text.lower() in ("yes", "on", "y", "true") else "false"


def _plain(event: Any) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.style in (None, "")


def _at(event: Any) -> tuple[int, int]:
    """Line and column, from 1."""
    return int(event.start_mark.line) + 1, int(event.start_mark.column) + 1
