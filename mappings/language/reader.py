"""Reading the shapes that table files and scenario files are made of, collecting problems on the way.

What a method returns after it has appended a problem is only good for reading on, never for use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from mappings.language.boxes import Box
from mappings.language.citations import CITATIONS
from mappings.language.vocabulary import NODE_CLASS, TableWords, Value, Word
from mappings.language.yaml_lines import Kind, Node, Problem, refuse_unknown_keys, suggest


class Shapes:
    """Reads plain shapes out of nodes; appends to `problems`."""

    def __init__(self, file: str, problems: list[Problem]) -> None:
        self.file = file
        self.problems = problems

    def fields(self, node: Node, keys: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Node] | None:
        """The fields of a mapping that are known; missing and unknown ones are problems. None when it is no mapping."""
        if not self.is_a(node, "mapping"):
            return None
        refuse_unknown_keys(node, keys, self.problems)
        for key in keys:
            if key not in node and key not in optional:
                self.refuse(node, f"{key} is missing", f"write {key}: ...")
        return {key: value for key, value in node.items() if key in keys}

    def items(self, node: Node | None) -> list[Node]:
        if node is None or not self.is_a(node, "sequence"):
            return []
        return node.sequence()

    def text(self, node: Node) -> str:
        if not self.is_a(node, "text"):
            return ""
        text = str(node.content).strip()
        if not text:
            self.refuse(node, "the text is empty", "write words")
        return text

    def exactly(self, node: Node | None, text: str) -> None:
        if node is not None and node.content != text:
            self.refuse(node, f"{written_in(node)} is not {text}", f"write {text}")

    def is_a(self, node: Node, kind: Kind) -> bool:
        if node.kind != kind:
            self.refuse(node, f"a {kind} belongs here, not a {node.kind}", f"write a {kind}")
        return node.kind == kind

    def refuse(self, node: Node, message: str, remedy: str) -> None:
        self.problems.append(node.problem(message, remedy))

    def sources(self, node: Node) -> tuple[str, ...]:
        """Known ids, separated by commas."""
        sources = tuple(part.strip() for part in self.text(node).split(","))
        for source in sources:
            if source not in CITATIONS:
                self.refuse(node, f"there is no source {source}", suggest(source, _near(source)))
        return sources


class Reader(Shapes):
    """Reads what belongs to one table. `node_classes`: those that its rules could speak of."""

    def __init__(
        self, words: TableWords, file: str, problems: list[Problem], node_classes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(file, problems)
        self.words = words
        self.node_classes = node_classes

    def box(self, node: Node) -> Box:
        masks = {axis: (1 << len(values)) - 1 for axis, values in self.words.axes.items()}
        if not self.is_a(node, "mapping"):
            return tuple(masks.values())
        if self.words.of_node and NODE_CLASS not in masks and NODE_CLASS in node:
            remedy = f"write {NODE_CLASS}: {listed(self.node_classes)} first under axes, and in the scenarios"
            self.refuse(node[NODE_CLASS], f"{NODE_CLASS} is no axis of this table yet", remedy)
            return tuple(masks.values())
        refuse_unknown_keys(node, self.words.axes, self.problems)
        for axis, written in node.items():
            if axis in masks:
                masks[axis] = self.mask(axis, written) or masks[axis]
        return tuple(masks.values())

    def mask(self, axis: str, node: Node) -> int:
        values = self.words.axes[axis]
        mask = 0
        for item in node.sequence() if node.is_sequence else [node]:
            word = item.content
            if not isinstance(word, str) or word not in values:
                self.refuse(item, f"{axis} has no value {written_in(item)}", _instead(item, values))
            elif mask >> values.index(word) & 1:
                self.refuse(item, f"{axis} names {word} twice", "keep one")
            else:
                mask |= 1 << values.index(word)
        if node.is_sequence and not node.sequence():
            self.refuse(node, f"{axis} names no value", "leave the axis out to mean any")
        return mask

    def word(self, key: str, word: Word, node: Node) -> Value:
        content: Value = node.content if node.kind in ("text", "boolean", "null") else None
        if node.kind not in ("text", "boolean", "null") or not contains(word.values, content):
            quoted = node.kind == "text" and content in [shown(value) for value in word.values]
            wrote = f'"{content}"' if quoted else written_in(node)
            self.refuse(
                node, f"{key} cannot be {wrote}", f"write {choices(word)}{', without quotes' if quoted else ''}"
            )
        return content


def contains(values: Iterable[Value], value: Value) -> bool:
    """`in`, but False is not 0 and "none" is not None."""
    return any(value is other or (isinstance(value, str) and value == other) for other in values)


def shown(value: Value | int) -> str:
    """A value as YAML writes it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def choices(word: Word) -> str:
    return " or ".join(shown(value) for value in word.values if value is not None)


def written_in(node: Node) -> str:
    return shown(node.content) if node.kind in ("text", "boolean", "null", "integer") else f"a {node.kind}"


def _instead(node: Node, values: tuple[str, ...]) -> str:
    """The word itself is right, but bare it means something else: quotes are what is missing."""
    text = written_in(node)
    return f'write "{text}" in quotes' if text in values else suggest(text, values)


def listed(values: Iterable[str]) -> str:
    return f"[{', '.join(values)}]"


def _near(source: str) -> list[str]:
    """Ids of the same family as a source that does not exist."""
    family = re.split(r"[-0-9]*$", source)[0] or source
    near = sorted(known for known in CITATIONS if known.startswith(family))
    return near or ["S-A1", "2.H-7", "1.3-A", "3.6"]
