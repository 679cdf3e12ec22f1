"""What `docs/how-to/change-a-mapping.md` shows works as it says."""

from __future__ import annotations

import io
import re
from pathlib import Path

from mappings.commands import main

DOCUMENT = (Path(__file__).parents[2] / "docs" / "how-to" / "change-a-mapping.md").read_text(encoding="utf-8")


def run(*argv: str | Path) -> tuple[int, str]:
    out = io.StringIO()
    return main([str(word) for word in argv], out), out.getvalue()


def test_the_rule_of_the_document_can_be_put_in_its_place(directory: Path) -> None:
    assert "rule" in run("explain", "state=rejected", "already_settled=no", "subscription=queue")[1]
    [rule] = re.findall(r"```\n(      - id: rejected-returns\n.*?)```", DOCUMENT, re.DOTALL)
    path = directory / "tables" / "settle.yaml"
    text = path.read_text(encoding="utf-8")
    begin = text.index("      - id: rejected-dead-letters\n")
    end = text.index("      - id: ", begin + 10)
    before = directory.parent / "before"
    before.mkdir()
    (before / "tables").symlink_to(_copy(directory / "tables", before))
    path.write_text(text[:begin] + rule + text[end:], encoding="utf-8")
    code, said = run("diff", before, directory)
    assert code == 1
    assert "settle in extended: " in said and "state rejected" in said
    assert "native: dead-letter -> return, failed: false -> true" in said
    code, said = run("check", directory)
    assert code == 1
    problems = [line for line in said.splitlines() if "/tables/" in line and "no scenario reaches" not in line]
    assert problems == [], said  # only its scenario and its expanded table are missing


def _copy(tables: Path, to: Path) -> Path:
    kept = to / "kept"
    kept.mkdir()
    for path in tables.iterdir():
        (kept / path.name).write_bytes(path.read_bytes())
    return kept
