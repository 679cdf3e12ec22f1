"""What `docs/how-to/change-a-mapping.md` shows works as it says."""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path

from mappings.compiler.table_set import SHIPPED
from mappings.tools.commands import main

DOCUMENT = (Path(__file__).parents[3] / "docs" / "how-to" / "change-a-mapping.md").read_text(encoding="utf-8")


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
    code, output = run("diff", before, directory)
    assert code == 1
    assert "settle in extended: " in output and "state rejected" in output
    assert "native: dead-letter -> return, failed: false -> true" in output
    code, output = run("check", directory)
    assert code == 1
    problems = [line for line in output.splitlines() if "/tables/" in line and "no scenario reaches" not in line]
    assert problems == [], output  # only its scenario and its expanded table are missing
    [scenario] = re.findall(r"```\n(  - name: Rejected comes back.*?)```", DOCUMENT, re.DOTALL)
    tests = directory / "scenarios" / "settle_test.yaml"
    replace_item(tests, "  - name: Rejected goes to the dead letters\n", "  - name: ", scenario)
    assert run("expand", directory)[0] == 0
    assert run("check", directory)[0] == 0


def _copy(tables: Path, to: Path) -> Path:
    kept = to / "kept"
    kept.mkdir()
    for path in tables.iterdir():
        (kept / path.name).write_bytes(path.read_bytes())
    return kept


def test_some_nodes_can_be_decided_about_otherwise(directory: Path) -> None:
    part = DOCUMENT[DOCUMENT.index("## Only for some nodes") : DOCUMENT.index("## Add a native error")]
    classes, axis, rules, scenarios, _ = re.findall(r"```\n(.*?)```", part, re.DOTALL)
    before = directory.parent / "before"
    shutil.copytree(directory, before)
    classify, settle = (directory / "tables" / f"{name}.yaml" for name in ("classify", "settle"))
    tests = directory / "scenarios" / "settle_test.yaml"
    rewrite(classify, "node_classes: [default]\nrules: []\n", classes)
    rewrite(settle, "axes:\n", f"axes:\n{axis}")
    replace_item(settle, "      - id: rejected-dead-letters\n", "      - id: ", rules)
    replace_item(tests, "  - name: Rejected goes to the dead letters\n", "  - name: ", scenarios)
    assert run("expand", directory)[0] == 0
    code, output = run("check", directory)
    assert code == 0, output
    assert "classify   2 classes, 1 rules, 1 patterns\n" in output
    settled = ["settle", "state=rejected", "already_settled=no", "subscription=queue"]
    link = ["source_durability=none", "receiver_settle_mode=first", "attempts=below"]
    for node, node_class, rule in (
        ("orders.bulk.7", "bulk", "rejected-bulk-discards"),
        ("orders.bulk.audit", "default", "rejected-dead-letters"),
    ):
        code, output = run("explain", directory, *settled, *link, f"node={node}")
        assert code == 0
        assert f"node {node}: class {node_class}, transformer as configured\n" in output
        assert f"rule {rule} ({settle}:" in output
    assert f"rule bulk-orders ({classify}:" in run("explain", directory, "node=orders.bulk.7")[1]
    code, output = run("diff", before, directory)
    assert code == 1
    assert 'classify: orders.bulk.* (unless ["orders.bulk.audit"]): node_class: default -> bulk\n' in output
    assert "settle in extended: 24 combinations: for class bulk, state rejected" in output
    assert "native: dead-letter -> discard\n" in output
    assert "um-9.12: " not in output, "nothing else is decided otherwise"


def test_a_native_error_and_its_rule_can_be_added(directory: Path) -> None:
    """As it is written: nothing but files of the tables' own folder is touched."""
    part = DOCUMENT[DOCUMENT.index("## Add a native error") :]
    error, request, rules, scenarios, commands = re.findall(r"```\n(.*?)```", part, re.DOTALL)
    shutil.copy(SHIPPED / "errors.yaml", directory)
    before = directory.parent / "before"
    shutil.copytree(directory, before)
    question = request.removeprefix("realmgate mappings explain ").split()
    assert run("explain", directory, *question) == (
        2,
        "there is no code NEW_QUOTA_EXCEEDED; write THROTTLING_QUOTA_EXCEEDED\n",
    )
    rewrite(directory / "errors.yaml", "errors:\n", f"errors:\n{error}")
    code, output = run("explain", directory, *question)
    assert code == 0 and "rule       published.not-stored-released (" in output and "class      transient\n" in output
    replace_item(directory / "tables" / "published.yaml", "      - id: not-stored-released\n", "      - id: ", rules)
    unlisted = "      - id: not-stored-unlisted-stays-unsettled\n"
    replace_item(directory / "tables" / "published.yaml", unlisted, "      - id: ", "")
    tests = directory / "scenarios" / "published_test.yaml"
    unlisted = (
        "  - name: What is not stored for certain ends the link unsettled, where the source does not list released\n"
    )
    replace_item(tests, unlisted, "  - name: ", "")
    replace_item(tests, "  - name: What may not be stored stays the publisher's\n", "  - name: ", scenarios)
    *own, diff = (line.removeprefix("realmgate mappings ").split() for line in commands.splitlines())
    assert diff == ["diff", "HEAD", "mappings"]
    for command, *words in own:
        code, output = run(command, directory, *words)
        assert code == 0, output
    assert "rule       published.unavailable-rejected (" in output
    assert "condition  amqp:resource-limit-exceeded\n" in output
    when = "sender_settle_mode=unsettled|mixed presettled=no"
    line = f"NEW_QUOTA_EXCEEDED\tkafka\tpublish\tany\t{when}\tunavailable\tunavailable\t"
    expanded = (directory / "expanded" / "extended.error.tsv").read_text(encoding="utf-8")
    assert f"\n{line}amqp:resource-limit-exceeded\ttransient\tlink\tinside\t30000\tpublished.unava" in expanded
    code, output = run("diff", before, directory)
    assert code == 1
    assert re.search(r"error in um-9.9, um-9.10, um-9.12: \d+ cases: code NEW_QUOTA_EXCEEDED.*\n  is new\n", output)
    pattern = r"error in extended: \d+ cases: code BROKER_NOT_AVAILABLE or .* more, .*presettled=no\n"
    assert re.search(pattern + r"  condition: nothing -> amqp:resource-limit-exceeded\n", output)


def rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def replace_item(path: Path, head: str, next_head: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    begin = text.index(head)
    end = text.index(next_head, begin + len(head))
    path.write_text(text[:begin] + new + text[end:], encoding="utf-8")
