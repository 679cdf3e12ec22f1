"""Which test shows which requirement of AMQP 1.0, and `docs/conformance/amqp.md`, which says what came of it:
`python -m tests.wire.amqp.conformance` runs the tests of the lines that have changed and writes it; `--all`: of every
line.

The requirements are those of `tests/wire/amqp/requirements.json`, a copy of the checklist of semantics.md 2.A to 2.X.
A test cites them: `@pytest.mark.requirement("H-7", "H-11")`. What the text leaves open, and what was chosen, stands in
`tests/wire/amqp/choices.py`.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.wire.amqp.choices import CHOICES

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "conformance" / "amqp.md"
REQUIREMENTS: list[dict[str, str]] = json.loads((Path(__file__).parent / "requirements.json").read_text("utf-8"))
PASSES = "passes"


@dataclass(frozen=True, slots=True)
class Line:
    """A requirement, and what shows that it is kept."""

    id: str
    level: str
    requirement: str
    tests: tuple[str, ...]  # `FILE::TEST`, from the root of the tree
    result: str

    @property
    def binding(self) -> bool:
        """Some part of it is a MUST or a MUST NOT."""
        return re.search(r"\bmust\b", self.level, re.IGNORECASE) is not None

    @property
    def choice(self) -> str:
        return CHOICES.get(self.id, "")

    def __str__(self) -> str:
        tests = ", ".join(f"`{test.removeprefix('tests/').removeprefix('wire/')}`" for test in self.tests)
        cells = [self.id, self.level, self.requirement, self.choice, tests, self.result]
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


@cache
def cited() -> Mapping[str, tuple[str, ...]]:
    """The tests of each requirement, by the markers in the files."""
    citations: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for test, ids in _marked(ast.parse(path.read_text(encoding="utf-8"))):
            for requirement in ids:
                citations.setdefault(requirement, []).append(f"{path.relative_to(ROOT)}::{test}")
    return {requirement: tuple(tests) for requirement, tests in citations.items()}


def _marked(module: ast.Module) -> Iterator[tuple[str, list[str]]]:
    for function in (node for node in module.body if isinstance(node, ast.FunctionDef)):
        for mark in function.decorator_list:
            if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.requirement":
                yield function.name, [ast.literal_eval(argument) for argument in mark.args]


def lines(results: Mapping[str, str]) -> list[Line]:
    """`results`: by test."""
    return [
        Line(entry["id"], entry["level"], entry["requirement"], tests, _result(tests, results))
        for entry in REQUIREMENTS
        for tests in [cited().get(entry["id"], ())]
    ]


def _result(tests: tuple[str, ...], results: Mapping[str, str]) -> str:
    failing = [test for test in tests if results.get(test) != PASSES]
    if failing:
        return f"fails: {', '.join(failing)}"
    return PASSES if tests else "no test"


class _Verdicts:
    """A pytest plugin: what became of each test, all its parameters together."""

    def __init__(self) -> None:
        self.results: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid.split("[")[0]
        if not report.passed:
            self.results[test] = "fails"
        elif report.when == "call":
            self.results.setdefault(test, PASSES)


def written() -> dict[str, str]:
    """The lines of the document, by requirement."""
    text = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else HEAD
    return {line.split(" | ")[0].removeprefix("| "): line for line in text.removeprefix(HEAD).splitlines()}


def run(tests: Iterable[str]) -> dict[str, str]:
    """Run them, and say of each whether it passes."""
    chosen, verdicts = sorted(set(tests)), _Verdicts()
    if chosen:
        pytest.main([f"--rootdir={ROOT}", *(str(ROOT / test) for test in chosen)], plugins=[verdicts])
    return verdicts.results


HEAD = """# What AMQP 1.0 asks for, requirement by requirement

Written by `python -m tests.wire.amqp.conformance` from the markers of the tests, which drive the gateway over a socket
with frames made by hand; `tests/wire/amqp/test_conformance.py` fails when a MUST or MUST NOT has no test that passes,
or when a line is no longer true. The requirements are those of `tests/wire/amqp/requirements.json`: the messaging text
of AMQP 1.0, the discussion paper on broker behaviour, the transport and transactions parts, and the settlement
sequences of Proton's documentation. *choice*: what we do where the text leaves it open, or differs, and why. Files
are those of `tests/wire/` unless they say otherwise.

| id | level | requirement | choice | test | result |
|---|---|---|---|---|---|
"""


def main(arguments: list[str]) -> None:
    believed = dict.fromkeys((test for tests in cited().values() for test in tests), PASSES)
    before: Any = {} if "--all" in arguments else written()
    changed = [line for line in lines(believed) if before.get(line.id) != str(line)]
    results = believed | dict.fromkeys((test for line in changed for test in line.tests), "did not run")
    results |= run(test for line in changed for test in line.tests)
    DOCUMENT.write_text(HEAD + "".join(f"{line}\n" for line in lines(results)), encoding="utf-8")
    sys.stdout.write(f"{len(changed)} lines changed in {DOCUMENT.name}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
