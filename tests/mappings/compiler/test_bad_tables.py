"""Every file under `bad/` is named after its one mistake and says by `# expect LINE: TEXT` what must be told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mappings.compiler.check import RULES_MAX, check_table
from mappings.compiler.classify_file import read_classification, unusable_transformers
from mappings.compiler.load import load_table
from mappings.compiler.table_set import SHIPPED
from mappings.language.vocabulary import TABLES
from mappings.language.yaml_lines import Problem
from transformers.events.installed import complaint_about

BAD = sorted((Path(__file__).parent / "bad").glob("*.yaml"))
EXPECT = re.compile(r"^# expect (\d+): (.*)$", re.MULTILINE)


def problems_of(path: Path) -> list[Problem]:
    with path.open(encoding="utf-8") as file:
        named = re.search(r"^table: (\w+)", file.read(10_000), re.MULTILINE)
    if named and named[1] == "classify":
        classification, mistakes = read_classification(path)
        return mistakes + unusable_transformers(classification, complaint_about)
    words = TABLES.get(named[1], TABLES["default"]) if named else TABLES["default"]
    problems: list[Problem] = []
    table = load_table(path, words, problems)
    return problems if table is None else check_table(table)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_the_mistake_is_reported_on_its_line(path: Path) -> None:
    expected = [(int(line), text) for line, text in EXPECT.findall(path.read_text(encoding="utf-8"))]
    problems = problems_of(path)
    assert expected, "a bad file says what it expects"
    for line, text in expected:
        reports = [f"{problem.message}; {problem.remedy}" for problem in problems if problem.line == line]
        assert any(_speaks_of(report, text) for report in reports), (line, text, [str(problem) for problem in problems])
    expected_lines = {line for line, _ in expected}
    assert {problem.line for problem in problems} == expected_lines, [str(problem) for problem in problems]


def test_every_problem_names_file_line_and_remedy() -> None:
    for path in BAD:
        for problem in problems_of(path):
            assert str(problem).startswith(f"{path}:{problem.line}: {problem.message}; "), problem
            assert problem.remedy, problem


def test_every_problem_points_at_something_that_is_written() -> None:
    for path in BAD:
        lines = path.read_text(encoding="utf-8").split("\n")
        for problem in problems_of(path):
            assert problem.place == f"{path}:{problem.line}:{problem.column}"
            at_end = problem.column == 1 and problem.line == len(lines)
            assert at_end or lines[problem.line - 1][problem.column - 1 :].strip(), problem


def test_the_column_is_that_of_the_word(tmp_path: Path) -> None:
    text = (SHIPPED / "tables" / "fault.yaml").read_text(encoding="utf-8")
    path = tmp_path / "fault.yaml"
    path.write_text(text.replace("scope: session", "scope: sessoin", 1), encoding="utf-8")
    [problem] = problems_of(path)
    line = path.read_text(encoding="utf-8").split("\n")[problem.line - 1]
    assert line[problem.column - 1 :].startswith("sessoin"), (problem, line)


def test_a_file_of_10_mb_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "fault.yaml"
    path.write_bytes(b"# " + b"x" * 10 * 1024 * 1024 + b"\ntable: fault\n")
    [problem] = problems_of(path)
    assert problem.message == "is 10,485,776 bytes long; that is too much"
    assert problem.remedy == "name a file of at most 1,000,000 bytes"


def test_very_many_rules_are_refused_before_they_are_compared(tmp_path: Path) -> None:
    """Each pair of them may clash: a file that may be read could name millions."""
    text = (SHIPPED / "tables" / "default.yaml").read_text(encoding="utf-8")
    rules = "".join(
        f"      - {{id: r-{at}, when: {{cause: lost}}, then: {{state: released}}, because: As it is., source: 2.G-3}}\n"
        for at in range(RULES_MAX + 1)
    )
    path = tmp_path / "default.yaml"
    path.write_text(text.replace("  extended:\n", f"{rules}  extended:\n"), encoding="utf-8")
    problems = problems_of(path)
    assert {problem.message.partition(" rules in ")[2] for problem in problems} <= {
        "um-9.9, um-9.10, um-9.12; that is too much",
        "extended; that is too much",
    }
    assert problems and all(problem.remedy == f"write at most {RULES_MAX}" for problem in problems)


def _speaks_of(message: str, text: str) -> bool:
    """Each clause of the expected text is in what was said; places (FILE:LINE) between them may differ."""
    return all(part in message for part in text.split("; "))
