"""Names are nouns of the field: identifiers of product, tests and benchmarks have no private word, names of tests are
plain.

Documents are read, too: a word that no identifier may have is in none of their sentences. What was recorded keeps the
words of its day.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TREES = (
    *("console", "gateway", "mappings", "native_backend", "reconciliation", "transformers"),
    *("bench", "deploy", "docs", "tests"),
)
SUFFIXES = {".py", ".c", ".h", ".js", ".java", ".go", ".rs", ".sh", ".md", ".yaml", ".html"}
RECORDED = ROOT / "bench" / "results"
PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")
HERE = "tests/test_names.py"
WRITTEN = "bygones_burial_doorkeeper_house_lobby_nobody_roster_sifter_sifters_somebody_whoever"
PRIVATE = set(re.findall("[a-z]+", WRITTEN))  # written so that a search for one of them finds nothing here
THEATRE = {
    *("act", "acts", "actor", "actors", "cast", "chorus", "crowd", "crowds", "ground", "grounds", "houses"),
    *("play", "plays", "scene", "scenes", "stage", "stages", "story", "stories", "theater", "theatre"),
}
"""Where the reader expects run, system, client or scenario."""
PASSIVE = {"told", "said"}
"""A test says what is reported, logged, shown or sent, and to whom."""
NO_NOUNS = {"told", "said", "asked", "found", "of", "each", "one"}
"""A variable is a noun of the domain: reply, request, node, findings, entry."""
_NO_NOUN = re.compile(rf"\b_?({'|'.join(sorted(NO_NOUNS))})\b *([=,:)]|in\b)")


@cache
def words(name: str) -> tuple[str, ...]:
    """The words of an identifier or a text, in small letters."""
    return tuple(word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name))


def texts() -> dict[str, str]:
    """Every file of the trees and every page, by its path."""
    files = [ROOT / page for page in PAGES]
    for tree in TREES:
        files += [file for file in (ROOT / tree).rglob("*.*") if file.suffix in SUFFIXES and file.is_file()]
    kept = [file for file in files if RECORDED not in file.parents and "node_modules" not in file.parts]
    return {file.relative_to(ROOT).as_posix(): file.read_text() for file in sorted(kept)}


def private_words(files: Mapping[str, str]) -> list[str]:
    """`path:line: word`, in code and prose alike."""
    findings = []
    for path, text in files.items():
        if path != HERE and PRIVATE & set(words(text)):
            for number, line in enumerate(text.splitlines(), 1):
                findings += [f"{path}:{number}: {word}" for word in sorted(PRIVATE & set(words(line)))]
    return findings


def wrong_test_names(files: Mapping[str, str]) -> list[str]:
    """Files, classes and functions of tests and benchmarks with a word of the theatre; tests that say what is told."""
    findings = []
    for path, text in files.items():
        if path.endswith(".py") and path.split("/")[0] in ("bench", "tests"):
            findings += [f"{path}: {name}" for name in _misnamed(path, text)]
    return findings


def _misnamed(path: str, text: str) -> Iterator[str]:
    for name in (Path(path).stem, *re.findall(r"^ *class (\w+)", text, re.MULTILINE)):
        yield from _with(name, THEATRE)
    for name in re.findall(r"^ *(?:async )?def (test_\w+)", text, re.MULTILINE):
        yield from _with(name, THEATRE | PASSIVE)


def _with(name: str, wrong: Collection[str]) -> Iterator[str]:
    if set(wrong) & set(words(name)):
        yield name


def variables_without_a_noun(files: Mapping[str, str]) -> list[str]:
    """`path:line: name` of variables and parameters. Fields of classes and functions have names of their own."""
    wrong = []
    for path, text in files.items():
        if path.endswith(".py") and _NO_NOUN.search(text):
            lines = sorted(set(_bound(ast.parse(text))))
            wrong += [f"{path}:{line}: {name}" for line, name in lines if name.lstrip("_") in NO_NOUNS]
    return wrong


def _bound(tree: ast.AST) -> Iterator[tuple[int, str]]:
    fields: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(body=body):
                fields |= {part.target for part in body if isinstance(part, ast.AnnAssign)}
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) if node not in fields:
                yield node.lineno, name


def test_no_word_is_private() -> None:
    assert private_words(texts()) == []
    planted = {
        "gateway/links/x.py": "class OpenHouse: ...\nfree = 1\n_TO_NOBODY = 2\n",
        "docs/x.md": "As_Whoever asks; a warehouse does not.",
    }
    assert [line.replace(": ", "_") for line in private_words(planted)] == [
        *("gateway/links/x.py:1_house", "gateway/links/x.py:3_nobody", "docs/x.md:1_whoever"),
    ]


def test_names_of_tests_are_plain() -> None:
    assert wrong_test_names(texts()) == []
    classes = "class OpenCrowd:\n    class Player:\n        class _Play: ...\n"
    planted = {
        "tests/fuzz/two_stages.py": classes,
        "tests/fuzz/test_x.py": "def test_a_peer_is_told(): ...\nasync def test_the_story(): ...\ndef said(): ...\n",
        "gateway/x.py": classes,
    }
    assert [line.partition(": ")[2] for line in wrong_test_names(planted)] == [
        *("two_stages", "OpenCrowd", "_Play"),
        *("test_a_peer_is_told", "test_the_story"),
    ]


def test_variables_are_nouns() -> None:
    assert variables_without_a_noun(texts()) == []
    planted = {
        "gateway/x.py": (
            "class X:\n    told: int = 1\n    def found(self, of):\n        _each = [one for one in of]\n"
            "        self.said = lambda asked: asked.told\n"
        ),
        "gateway/x.js": "for (const each of found) {}",
    }
    assert variables_without_a_noun(planted) == [
        *("gateway/x.py:3: of", "gateway/x.py:4: _each", "gateway/x.py:4: one", "gateway/x.py:5: asked"),
    ]
