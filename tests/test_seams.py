"""Tests reach into private members of others seldom: what a test needs to see or to do has a seam.

Counted are names with one underscore that some file of ours defines: attributes of other objects, private names that a
module imports, and those that are named to a `setattr`. What stands in the same file does not count, nor what belongs
to a library, nor what a file of the folder defines that the test's folder mirrors (`tests/native_backend/state` may
look into `native_backend/state`).
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tests.kit.source_files import source_files

PRODUCT = ("console", "gateway", "mappings", "native_backend", "reconciliation", "transformers")
TESTS = ("bench", "tests")
MOST = 50
SEAM = "tests/kit/realm/inside.py"  # the place that exists to do it for all others


NAMING = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Name),
    *(ast.Attribute, ast.ImportFrom, ast.Call),
)


def naming(text: str) -> list[ast.AST]:
    """The nodes of a file that may name something."""
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, NAMING)]


def defined(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Private names that a file gives to something of its own."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name


def reached(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Private names of others, with their lines."""
    for node in nodes:
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                continue
            case ast.Attribute(attr=name):
                yield node.lineno, name
            case ast.ImportFrom(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[ast.Constant(value=str(name)), *_]):
                yield node.lineno, name.rpartition(".")[2]
            case ast.Call(func=ast.Attribute(attr="setattr"), args=[_, ast.Constant(value=str(name)), *_]):
                yield node.lineno, name


def reaches(tests: Mapping[str, str], product: Mapping[str, str]) -> list[str]:
    """`path:line: name`, in the order of the files."""
    own, uses = dict[str, set[str]](), dict[str, set[tuple[int, str]]]()
    for path, text in {**tests, **product}.items():  # one tree at a time: all of them keep the collector busy
        nodes = naming(text)
        own[path] = {name for name in defined(nodes) if re.match("_[^_]", name)}
        uses[path] = set(reached(nodes)) if path in tests else set()
    ours = set().union(*own.values())
    of_folders = defaultdict[str, set[str]](set)
    for path, names in own.items():
        of_folders[path.rpartition("/")[0]] |= names
    findings = []
    for path in tests:
        mirrored = path.rpartition("/")[0].partition("/")[2]
        others = ours.difference(own[path], of_folders[mirrored])
        if path != SEAM:
            findings += [f"{path}:{line}: {name}" for line, name in sorted(uses[path]) if name in others]
    return findings


def test_few_tests_reach_into_others() -> None:
    findings = reaches(source_files(TESTS), source_files(PRODUCT))
    assert len(findings) <= MOST, "\n".join(["", *findings])


def test_each_way_is_seen() -> None:
    product = {"gateway/x.py": "class X:\n    def __init__(self):\n        self._a = self._b = 1\n_WORDS = 1\n"}
    tests = {
        "tests/gateway/test_y.py": "x._a = 1\n",
        "tests/test_x.py": (
            "from gateway.x import _WORDS\n"
            "class Y:\n    def _own(self): return self._a\n"
            "x._a = x._b\nY()._own()\nx._of_a_library()\n"
            "monkeypatch.setattr(x, '_a', 1)\nmonkeypatch.setattr('gateway.x._WORDS', 2)\n"
        ),
    }
    assert [line.partition(":")[2] for line in reaches(tests, product)] == [
        *("1: _WORDS", "4: _a", "4: _b", "7: _a", "8: _WORDS"),
    ]
