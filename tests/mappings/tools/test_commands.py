"""`check`, `explain` and `expand`, as an operator runs them, on the shipped directory and on spoilt copies of it."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from mappings.language.vocabulary import PROFILES, TABLES
from mappings.language.yaml_lines import Problem
from mappings.tools.commands import main
from mappings.tools.problem_text import write_problems

LISTED = ("rejected=agreed", "released=agreed")


def run(*argv: str | Path) -> tuple[int, str]:
    out = io.StringIO()
    return main([str(word) for word in argv], out), out.getvalue()


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


# -- check


def test_the_shipped_directory_is_sound() -> None:
    code, output = run("check")
    assert code == 0
    for name in TABLES:
        counts = ", ".join(rf"{re.escape(profile)} \d+ rules" for profile in PROFILES)
        assert re.search(rf"^{name} +{counts}, .* \d+ scenarios$", output, re.MULTILINE)


def test_a_copy_is_as_sound_as_the_original(directory: Path) -> None:
    assert run("check", directory) == run("check")


def test_check_tells_every_problem_and_how_many(directory: Path) -> None:
    edit(directory / "tables" / "fault.yaml", "scope: link", "scope: lnk")
    edit(directory / "tables" / "settled.yaml", "when: {answer: done}", "when: {answer: [done, unexpected]}")
    code, output = run("check", directory)
    assert code == 1
    assert f"{directory}/tables/fault.yaml:" in output
    assert f"{directory}/tables/settled.yaml:" in output
    assert output.endswith("2 problems\n")


def test_a_changed_rule_fails_its_scenario_and_its_expanded_table(directory: Path) -> None:
    edit(directory / "tables" / "fault.yaml", '"amqp:not-allowed"', '"amqp:illegal-state"')
    code, output = run("check", directory)
    assert code == 1
    wrong = "rule outcome-not-agreed: condition is amqp:illegal-state, expected amqp:not-allowed"
    assert f"extended decides fault=outcome-not-agreed by {wrong}" in output
    assert f"{directory}/expanded/extended.fault.tsv:12:1: the expanded table is out of date" in output


def test_a_rule_without_a_scenario_is_reported(directory: Path) -> None:
    path = directory / "scenarios" / "fault_test.yaml"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-3]), encoding="utf-8")
    code, output = run("check", directory)
    assert code == 1
    assert "no scenario reaches rule idle (every profile); write one in" in output
    assert output.endswith("1 problem\n")


IDLE = "given: {fault: idle}"
STOLEN = 'expect: {then: {scope: link, condition: "amqp:link:stolen"}}'
BAD_SCENARIOS = {
    "wrong-rule": (f"{IDLE}\n    expect: {{", f"{IDLE}\n    expect: {{rule: framing, ", "expected rule framing"),
    "unknown-fact": (IDLE, "given: {fault: idel}", "fault has no value idel; write idle"),
    "unknown-axis": (IDLE, "given: {fualt: idle}", "unknown key fualt; write fault"),
    "unknown-then-key": (STOLEN, "expect: {then: {scpe: link}}", "unknown key scpe; write scope"),
    "expects-nothing": (STOLEN, "expect: {then: {}}", "then expects nothing"),
    "no-expectation": (f"    {STOLEN}\n", "", "expect is missing"),
    "unknown-profile": (IDLE, f"profiles: [um]\n    {IDLE}", "there is no profile um; write"),
    "no-profile": (IDLE, f"profiles: []\n    {IDLE}", "profiles names no profile"),
    "wrong-table": ("table: fault", "table: default", "default is not fault; write fault"),
    "duplicate-key": ("table: fault", "table: fault\ntable: fault", "key table is written twice"),
}


@pytest.mark.parametrize("mistake", BAD_SCENARIOS)
def test_a_mistake_in_a_scenario_is_reported(directory: Path, mistake: str) -> None:
    old, new, message = BAD_SCENARIOS[mistake]
    edit(directory / "scenarios" / "fault_test.yaml", old, new)
    code, output = run("check", directory)
    assert code == 1
    line = next(line for line in output.splitlines() if message in line)
    assert re.match(rf"{re.escape(str(directory))}/scenarios/fault_test\.yaml:\d+:\d+: ", line)


def test_a_scenario_that_cannot_happen_is_reported(directory: Path) -> None:
    edit(
        directory / "scenarios" / "published_test.yaml",
        'given: {answer: stored, presettled: "no"}',
        'given: {answer: stored, presettled: "no", sender_settle_mode: settled}',
    )
    code, output = run("check", directory)
    assert code == 1
    assert "every combination given is declared impossible" in output


def test_scenarios_of_no_table_and_missing_scenarios_are_reported(directory: Path) -> None:
    (directory / "scenarios" / "fault_test.yaml").rename(directory / "scenarios" / "faults_test.yaml")
    code, output = run("check", directory)
    assert code == 1
    assert "faults_test names no scenarios of a table; write fault_test" in output
    assert "no scenario reaches rule framing" in output
    for path in (directory / "scenarios").iterdir():
        path.unlink()
    (directory / "scenarios").rmdir()
    assert "scenarios:1:1: is no directory" in run("check", directory)[1]


# -- expand


def test_expand_writes_what_check_compares(directory: Path) -> None:
    assert run("expand", directory, "--check") == (0, "")
    edit(directory / "tables" / "fault.yaml", '"amqp:not-allowed"', '"amqp:illegal-state"')
    (directory / "expanded" / "um-9.8.fault.tsv").write_text("cell\n")
    code, output = run("expand", "--check", directory)
    assert code == 1
    assert "extended.fault.tsv:12:1: the expanded table is out of date from this line on; run realmgate" in output
    assert "um-9.8.fault.tsv:1:1: is of no table and profile; remove it" in output
    code, output = run("expand", directory)
    assert code == 0
    assert output.endswith("5 of 53 expanded tables changed\n")
    assert run("expand", directory, "--check") == (0, "")
    assert "condition=amqp:illegal-state" in (directory / "expanded" / "extended.fault.tsv").read_text()


def test_a_missing_expanded_table_is_reported_and_written(directory: Path) -> None:
    path = directory / "expanded" / "extended.settle.tsv"
    kept = path.read_text(encoding="utf-8")
    path.unlink()
    assert "extended.settle.tsv:1:1: the expanded table is missing" in run("check", directory)[1]
    assert run("expand", directory)[0] == 0
    assert path.read_text(encoding="utf-8") == kept


def test_expanded_lines_hold_every_possible_combination(directory: Path) -> None:
    lines = (directory / "expanded" / "um-9.12.publish.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["cell", *TABLES["publish"].axes, "rule", "then"]
    assert len(lines) == 1 + 176
    then = "native=publish outcome=none settle=false transaction=keep"
    assert lines[1] == f"0\twhole\tevent\tno\tunsettled\tno\tagreed\tagreed\tpublish-unsettled\t{then}"


def test_nothing_is_expanded_from_rules_with_problems(directory: Path) -> None:
    edit(directory / "tables" / "fault.yaml", "scope: link", "scope: lnk")
    before = {path: path.read_text() for path in (directory / "expanded").iterdir()}
    assert run("expand", directory)[0] == 1
    assert {path: path.read_text() for path in (directory / "expanded").iterdir()} == before


# -- explain

FACTS = ("state=accepted", "already_settled=no", "subscription=durable", "source_durability=configuration")


def test_explain_names_rule_place_reason_and_source(directory: Path) -> None:
    code, output = run("explain", directory, "settle", *FACTS, "receiver_settle_mode=first", "attempts=below")
    assert code == 0
    place = rf"{re.escape(str(directory))}/tables/settle\.yaml:\d+"
    assert re.search(rf"^rule accepted-durable-acknowledges \({place}\)$", output, re.MULTILINE)
    assert "then     native=acknowledge failed=false elsewhere=false outcome=accepted settle=true" in output
    assert "because  A durable subscriber acknowledges one event at its store" in output
    assert "source   S-A5, S-A7" in output


def test_explain_asks_the_profile_and_directory_that_are_named(directory: Path) -> None:
    facts = ("operation=return", "answer=indeterminate", "peer_settled=no")
    assert "rule indeterminate-untold" in run("explain", "settled", *facts)[1]
    assert "rule indeterminate-rejected" in run("explain", "settled", *facts, "--profile", "um-9.12")[1]
    edit(directory / "tables" / "settled.yaml", "It may be done or not", "Who can say")
    assert "Who can say" in run("explain", "--dir", directory, "settled", *facts)[1]


def test_explain_lists_what_open_values_decide() -> None:
    code, output = run("explain", "settle", "subscription=plain", "state=accepted", "already_settled=no")
    assert code == 0
    assert re.search(r"^source_durability\n  none +accepted-plain\n", output, re.MULTILINE)
    assert re.search(r"^rules\n  accepted-plain +native=none .*settle=true$", output, re.MULTILINE)
    assert "accepted-durable-acknowledges" not in output
    code, output = run("explain", "published", "presettled=yes")
    assert re.search(r"^  unsettled +impossible$", output, re.MULTILINE)


def test_explain_says_why_something_is_impossible() -> None:
    code, output = run("explain", "published", "answer=stored", "sender_settle_mode=settled", "presettled=no", *LISTED)
    assert code == 0
    assert re.search(r"impossible \(.*published\.yaml:\d+\)\n  because  A sender that agreed to settle all", output)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("setle",), "there is no table setle; write settle"),
        (("settle", "sate=accepted"), "there is no axis sate; write state"),
        (("settle", "state=acepted"), "there is no state acepted; write accepted"),
        (("settle", "accepted"), "accepted is not AXIS=VALUE; write one of state, "),
        (("settle", "state=accepted", "state=rejected"), "state is given twice; keep one"),
    ],
)
def test_explain_names_the_word_that_is_wrong(argv: tuple[str, ...], message: str) -> None:
    code, output = run("explain", *argv)
    assert code == 2
    assert message in output


def test_explain_refuses_rules_with_problems(directory: Path) -> None:
    edit(directory / "tables" / "fault.yaml", "scope: link", "scope: lnk")
    code, output = run("explain", directory, "fault", "fault=idle")
    assert code == 1
    assert "scope cannot be lnk" in output


def test_a_wrong_command_line_leaves_with_2() -> None:
    with pytest.raises(SystemExit) as left:
        run("explode")
    assert left.value.code == 2


# -- formats, and test


def test_check_for_programs_and_pull_requests(directory: Path) -> None:
    edit(directory / "tables" / "fault.yaml", "scope: session", "scope: 100%")
    code, output = run("check", directory, "--format", "json")
    assert code == 1
    document = json.loads(output)
    assert document["count"] == 1
    [problem] = document["problems"]
    assert problem["file"] == str(directory / "tables" / "fault.yaml")
    assert problem["message"] == "scope cannot be 100%"
    line = (directory / "tables" / "fault.yaml").read_text().split("\n")[problem["line"] - 1]
    assert line[problem["column"] - 1 :].startswith("100%")
    code, output = run("check", directory, "--format", "github")
    assert code == 1
    assert re.fullmatch(
        r"::error file=.*fault\.yaml,line=\d+,col=\d+::scope cannot be 100%25; write link or .*\n", output
    )
    assert json.loads(run("check", "--format", "json")[1]) == {"problems": [], "count": 0}
    assert run("check", "--format", "github") == (0, "")


def test_an_annotation_is_one_line_whatever_it_says() -> None:
    out = io.StringIO()
    assert write_problems([Problem("a:b,c", 3, "100 %\nof it", "stop", 7)], "github", out) == 1
    assert out.getvalue() == "::error file=a%3Ab%2Cc,line=3,col=7::100 %25%0Aof it; stop\n"


def test_problems_of_all_tables_and_scenarios_are_reported_at_once(directory: Path) -> None:
    edit(directory / "tables" / "fault.yaml", "scope: session", "scope: sessoin")
    edit(directory / "tables" / "default.yaml", "when: {cause: stopped}", "when: {cause: [stopped, lost]}")
    edit(directory / "scenarios" / "default_test.yaml", "given: {", "gievn: {")
    code, output = run("check", directory)
    assert code == 1
    assert "scope cannot be sessoin" in output
    assert "both hit cause=lost default_outcome=unset (1 combinations); narrow stopped-is-released" in output
    assert "lost-is-released: it says nothing of its own" in output
    assert (
        "write when: {cause: [unstated, cut-off, rolled-back], default_outcome: accepted} in default-accepted" in output
    )
    assert "unknown key gievn; write given" in output


def test_a_gap_is_reported_with_the_rule_that_would_fill_it(directory: Path) -> None:
    edit(
        directory / "tables" / "settled.yaml",
        "when: {answer: access-denied}",
        'when: {answer: access-denied, peer_settled: "no"}',
    )
    code, output = run("check", directory)
    assert code == 1
    assert "no rule hits operation=acknowledge answer=access-denied peer_settled=yes (" in output
    assert "when (answer is access-denied and peer_settled is yes)" in output
    assert 'when: {answer: access-denied, peer_settled: "yes"}, or declare it impossible' in output


def test_the_shipped_scenarios_reach_every_rule() -> None:
    code, output = run("test")
    assert code == 0
    reached, rules = re.search(r"^(\d+) of (\d+) rules reached \(100\.0 %\)", output, re.MULTILINE).groups()  # type: ignore[union-attr]
    assert reached == rules
    assert int(rules) >= 390


def test_a_rule_that_no_scenario_reaches_fails_the_test_unless_less_will_do(directory: Path) -> None:
    path = directory / "scenarios" / "fault_test.yaml"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-3]), encoding="utf-8")
    code, output = run("test", directory)
    assert code == 1
    assert "no scenario reaches rule idle (every profile)" in output
    assert "(99.5 %)" in output
    assert run("test", directory, "--least", "98")[0] == 0
    edit(directory / "scenarios" / "default_test.yaml", "state: accepted", "state: rejected")
    assert run("test", directory, "--least", "0")[0] == 1
