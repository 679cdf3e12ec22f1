"""Shapes of values in a configuration file: whole numbers, words, texts, lists of them.

A shape reads one value and names everything that is wrong with it, with what to write instead; it gives None then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from mappings.language.yaml_lines import Node, Problem, suggest


@dataclass(frozen=True, slots=True)
class Shape:
    """`what` it is, in words; `example` to write instead; `read` gives the value, or says what is wrong with it;
    `schema`: the same in JSON Schema, as far as that can say it."""

    what: str
    example: str
    read: Callable[[str, Node, list[Problem]], Any]
    schema: Mapping[str, Any]


def wrong(key: str, node: Node, shape: Shape) -> Problem:
    return node.problem(
        f"{key} must be {shape.what}, not {_words(node)}", f"write {key.rpartition('.')[2]}: {shape.example}"
    )


def _words(node: Node) -> str:
    content = node.value
    return f"{node.kind} {json.dumps(content)}" if not isinstance(content, dict | list | None) else node.kind


def integer(low: int, high: int, example: int) -> Shape:
    def read(key: str, node: Node, problems: list[Problem]) -> int | None:
        content = node.value
        if node.kind != "integer":
            problems.append(wrong(key, node, shape))
        elif low <= content <= high:
            return int(content)
        else:
            problems.append(node.problem(f"{key} is {content}", f"write a number from {low} to {high}"))
        return None

    schema = {"type": "integer", "minimum": low, "maximum": high}
    shape = Shape(f"a whole number from {low} to {high}", str(example), read, schema)
    return shape


def boolean(example: bool) -> Shape:
    def read(key: str, node: Node, problems: list[Problem]) -> bool | None:
        if node.kind == "boolean":
            return bool(node.value)
        problems.append(wrong(key, node, shape))
        return None

    shape = Shape("true or false", json.dumps(example), read, {"type": "boolean"})
    return shape


def text(what: str, example: str, legal: Callable[[str], str | None] = lambda _: None, pattern: str = "") -> Shape:
    """`legal` says what is wrong with a text and what to write, or None; `pattern`: what of it JSON Schema can say."""

    def read(key: str, node: Node, problems: list[Problem]) -> str | None:
        if node.kind != "text":
            problems.append(wrong(key, node, shape))
            return None
        fault = legal(node.value) if node.value else "is empty"
        if fault is not None:
            problems.append(node.problem(f"{key}: {json.dumps(node.value)} {fault}", f"write {example}"))
            return None
        return str(node.value)

    schema = {"type": "string", "minLength": 1} | ({"pattern": pattern} if pattern else {})
    shape = Shape(what, example, read, schema)
    return shape


def choice(values: Collection[str]) -> Shape:
    def read(key: str, node: Node, problems: list[Problem]) -> str | None:
        if node.kind != "text":
            problems.append(wrong(key, node, shape))
        elif node.value in values:
            return str(node.value)
        else:
            remedy = suggest(node.value, values)
            problems.append(node.problem(f"{key}: there is no {json.dumps(node.value)}", remedy))
        return None

    first = next(iter(values))
    example = first if first[:1].isalpha() else json.dumps(first)  # a bare 1.2 is no text
    shape = Shape(" or ".join(values), example, read, {"enum": list(values)})
    return shape


def sequence(item: Shape, what: str, example: str, least: int = 0) -> Shape:
    def read(key: str, node: Node, problems: list[Problem]) -> list[Any] | None:
        if not node.is_sequence:
            problems.append(wrong(key, node, shape))
            return None
        count = len(problems)
        items = []
        for element in node.sequence():
            content = item.read(key, element, problems)
            if content is not None and content in items:
                problems.append(element.problem(f"{key} names {json.dumps(element.value)} twice", "keep one"))
            items.append(content)
        if len(items) < least:
            problems.append(node.problem(f"{key} is empty", f"write {example}"))
        return None if len(problems) > count else items

    schema = {"type": "array", "items": item.schema, "uniqueItems": True} | ({"minItems": least} if least else {})
    shape = Shape(what, example, read, schema)
    return shape
