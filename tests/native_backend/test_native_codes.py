"""What the realm calls a native code is one word, wherever it is made: programs compare it, metrics count by it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from mappings.compiler.errors import LOGS, is_code, shipped_errors
from native_backend.nodes.words import CommitAnswer, PublishAnswer, SettleAnswer, SubscribeAnswer

ROOT = Path(__file__).resolve().parents[2]
# What is called with a native code, and at which place.
CODES = {
    "Published": 4,
    "NodeFound": 3,
    "DurablesFound": 3,
    "Subscribed": 3,
    "SubscriptionLost": 3,
    "Settled": 2,
    "Committed": 3,
    "lose": 1,
    "revoke": 0,
    "_give_up": 1,
    "_fail": 1,
}


WORDS = ("evidence.py", "durable_changes.py")  # words for the log, and for operators: a command's detail
ANSWERS = {*get_args(SubscribeAnswer), *get_args(SettleAnswer), *get_args(PublishAnswer), *get_args(CommitAnswer)}


def sentences(text: str) -> Iterator[str]:
    """Calls that say words where a code belongs, and answers that are returned with words."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            answer, code = node.value.elts
            if isinstance(answer, ast.Constant) and answer.value in ANSWERS and _is_sentence(code):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            at = CODES.get(name)
            if at is not None and at < len(node.args) and _is_sentence(node.args[at]):
                yield f"line {node.lineno}: {ast.unparse(node)}"


def _is_sentence(code: ast.expr) -> bool:
    words = code.value if isinstance(code, ast.Constant) else ""
    return isinstance(code, ast.JoinedStr) or (isinstance(words, str) and words != "" and not is_code(words))


def test_no_answer_has_a_sentence_for_a_code() -> None:
    paths = [path for room in ("native_backend", "gateway") for path in (ROOT / room).rglob("*.py")]
    assert len(paths) > 100
    read = {path: path.read_text() for path in paths if path.name not in WORDS}
    assert [f"{path.relative_to(ROOT)}: {line}" for path, text in read.items() for line in sentences(text)] == []


def test_a_sentence_is_found() -> None:
    bad = 'x.lose("not-found", "it is gone")\nPublished(o, 0, [], "full", f"{node} is full")\nSettled(o, "done")'
    assert len([*sentences(bad)]) == 2
    assert len([*sentences('def f():\n    return "unexpected", f"a {kind} is not browsed"')]) == 1


@pytest.mark.parametrize("log", LOGS)
def test_what_logs_call_their_errors_are_codes(log: str) -> None:
    assert all(map(is_code, shipped_errors().codes[log]))
    assert not is_code("q is full") and not is_code("") and not is_code("x" * 61)
