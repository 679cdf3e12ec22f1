"""What README and the documents tell a reader to type works, and the places and texts that they quote are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.deploy.readme import README, ROOT, ran

FIRST_EDIT = (ROOT / "docs/how-to/first-edit.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PLACE = re.compile(r"([a-z][\w-]*) \(([\w/.-]+\.yaml):(\d+)\)")  # a rule, and where it stands
README_LINES = 130


def typed(beginning: str) -> str:
    """The line of the page that begins so, without its comment."""
    [line] = [line for line in FIRST_EDIT.splitlines() if line.startswith(beginning)]
    return line.partition("  #")[0].strip()


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A directory like a clone's, as far as the tables go."""
    (tmp_path / "mappings").symlink_to(ROOT / "mappings")
    return tmp_path


def block(beginning: str) -> str:
    """The block of the page that begins so."""
    [snippet] = [text for text in re.findall(r"```\w*\n(.*?)```", FIRST_EDIT, re.DOTALL) if text.startswith(beginning)]
    return str(snippet)


def flowing(text: str) -> str:
    return " ".join(text.split())


def test_the_first_edit_works_as_it_is_written(clone: Path) -> None:
    copied = ran(typed("mkdir my-rules"), clone)
    assert copied.returncode == 0, copied.stderr
    checked = ran(typed("realmgate mappings check my-rules"), clone)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    table = clone / "my-rules" / "tables" / "default.yaml"
    rule = yaml.safe_load(block("- id: cut-off"))[0]
    assert f"{rule['then']}".count("modified-failed") == 1
    before = table.read_text()
    at = before.index(f"- id: {rule['id']}")
    table.write_text(before[:at] + before[at:].replace("state: modified-failed", "state: released", 1))
    checked = ran(typed("realmgate mappings check my-rules"), clone)
    assert checked.returncode == 1
    assert re.search(r"default_test\.yaml:\d+", checked.stdout + checked.stderr), "it names the scenario, with its line"
    for scenario in (clone / "my-rules" / "scenarios").glob("default_test.yaml"):
        text = scenario.read_text()
        scenario.write_text(re.sub(rf"(rule: {rule['id']}.*?)modified-failed", r"\1released", text, flags=re.DOTALL))
    expanded = ran(typed("realmgate mappings expand my-rules"), clone)
    assert expanded.returncode == 0, expanded.stdout + expanded.stderr
    assert "expanded tables changed" in expanded.stdout
    checked = ran(typed("realmgate mappings check my-rules"), clone)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_rule_that_is_shown_is_the_shipped_one() -> None:
    [shown] = yaml.safe_load(block("- id: cut-off"))
    rules = yaml.safe_load((ROOT / "mappings/tables/default.yaml").read_text())["profiles"]["extended"]["rules"]
    [shipped] = [rule for rule in rules if rule["id"] == shown["id"]]
    assert shown == shipped


def test_what_explain_prints_is_what_is_shown() -> None:
    printed = ran(typed("realmgate mappings explain published"), ROOT)
    assert printed.returncode == 0, printed.stderr
    assert flowing(block("rule not-stored-released")) in flowing(printed.stdout.replace(f"{ROOT}/", ""))
    for line in re.findall(r"^realmgate mappings explain .*$", FIRST_EDIT, re.MULTILINE):
        assert ran(line.partition("  #")[0], ROOT).returncode == 0, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_place_that_is_quoted_is_true(page: Path) -> None:
    for rule, file, line in PLACE.findall(page.read_text()):
        text = (ROOT / file).read_text().splitlines()[int(line) - 1]
        assert text.strip() == f"- id: {rule}", f"{page.name} quotes {file}:{line}"


def test_places_are_quoted() -> None:
    assert PLACE.findall(FIRST_EDIT)


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= README_LINES
