"""An XML file as elements with their lines. A document type is refused: with it come entities, which can name other
files and grow without end. Namespaces are left out of names; comments and processing instructions, too.

Bounds: 16 MiB, 64 levels. Errors: `ImportProblem`, with FILE:LINE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

from gateway.cli.imports.imported import ImportProblem, read_octets

_SIZE_MAX: Final = 16 << 20
_DEPTH_MAX: Final = 64


@dataclass(slots=True)
class Element:
    """`text`: its own, without white space around it."""

    name: str
    line: int
    attributes: dict[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def first(self, name: str) -> Element | None:
        return next((child for child in self.children if child.name == name), None)

    def all(self, name: str) -> Iterator[Element]:
        return (child for child in self.children if child.name == name)


def read_xml(path: Path) -> Element:
    """Its root."""
    return _Reader(path).read(read_octets(path, _SIZE_MAX))


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._open: list[Element] = []
        self._root: Element | None = None

    def read(self, octets: bytes) -> Element:
        try:
            self._parser.Parse(octets, True)
        except expat.ExpatError as error:
            words = expat.errors.messages.get(error.code, "it is no XML")
            raise ImportProblem(f"{self._path}:{error.lineno}: {words}") from None
        assert self._root is not None, "expat refuses a document without an element"
        return self._root

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= _DEPTH_MAX:
            raise ImportProblem(
                f"{self._path}:{self._parser.CurrentLineNumber}: more than {_DEPTH_MAX} levels of elements"
            )
        local = {key.rpartition(" ")[2]: value for key, value in attributes.items()}
        element = Element(name.rpartition(" ")[2], self._parser.CurrentLineNumber, local)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, _: str) -> None:
        element = self._open.pop()
        element.text = element.text.strip()

    def _characters(self, text: str) -> None:
        if self._open:
            self._open[-1].text += text

    def _doctype(self, *_: Any) -> None:
        line = self._parser.CurrentLineNumber
        raise ImportProblem(f"{self._path}:{line}: it has a document type (<!DOCTYPE>), which is not read: take it out")
