"""`diff`: what changes, in words; a renamed rule is no change of behaviour."""

from __future__ import annotations

import io
import shutil
import subprocess
from pathlib import Path

import pytest

from mappings.tools.commands import main
from mappings.tools.difference import Expanded, compare, read_expanded, write_groups

TOO_LARGE = '{outcome: rejected, settle: true, condition: "amqp:link:message-size-exceeded", class: transient}'


def diff(*argv: str | Path) -> tuple[int, list[str]]:
    out = io.StringIO()
    return main(["diff", *map(str, argv)], out), out.getvalue().splitlines()


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) >= 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_copy_is_no_difference(directory: Path) -> None:
    assert diff(directory, directory) == (0, ["the same behaviour"])


def test_a_changed_rule_is_described_for_the_profiles_that_have_it(directory: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(directory, changed)
    released = TOO_LARGE.replace("outcome: rejected", "outcome: modified")
    edit(changed / "tables" / "published.yaml", TOO_LARGE, released)
    code, output = diff(directory, changed)
    assert code == 1
    modes = "sender_settle_mode unsettled or mixed"
    assert output == [
        f"published in extended: 4 combinations: answer too-large, {modes}, presettled no, rejected agreed",
        "  outcome: rejected -> modified",
        "4 combinations decided otherwise",
    ]


def test_a_renamed_rule_is_named_and_changes_nothing(directory: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(directory, changed)
    edit(changed / "tables" / "default.yaml", "id: lost-is-released", "id: lost-comes-back")
    code, output = diff(directory, changed)
    assert code == 0
    assert output == [
        "default in um-9.9, um-9.10, um-9.12, extended: 1 combination: cause lost, default_outcome unset",
        "  rule lost-is-released -> lost-comes-back, to the same effect",
        "the same behaviour",
    ]


def test_two_profiles() -> None:
    assert diff("um-9.10", "um-9.12") == (0, ["the same behaviour"])
    code, output = diff("um-9.12", "extended")
    assert code == 1
    assert (
        "attached in um-9.12 -> extended: 1 combination: direction subscribe, answer not-found, moment later" in output
    )
    assert "  condition: amqp:not-found -> amqp:resource-deleted" in output


def test_a_git_revision_of_a_folder(directory: Path) -> None:
    git = ["git", "-C", str(directory), "-c", "user.name=n", "-c", "user.email=e@x"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    assert diff("HEAD", directory, "--dir", directory) == (0, ["the same behaviour"])
    edit(directory / "tables" / "fault.yaml", '"amqp:not-allowed"', '"amqp:illegal-state"')
    code, output = diff("HEAD", directory, "--dir", directory)
    assert code == 1
    assert output[1] == "  condition: amqp:not-allowed -> amqp:illegal-state"
    code, output = diff("no-such-thing", directory, "--dir", directory)
    assert code == 2
    assert output[0].startswith("no-such-thing is no folder, no profile and no git revision")


def test_tables_with_problems_are_not_compared(directory: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(directory, changed)
    edit(changed / "tables" / "fault.yaml", "scope: session", "scope: sessoin")
    code, output = diff(directory, changed)
    assert code == 2
    assert "scope cannot be sessoin" in output[0]


@pytest.mark.parametrize("swapped", [False, True])
def test_an_axis_that_one_side_has_is_compared_for_each_of_its_values(swapped: bool) -> None:
    old = read_expanded("cell\tstate\trule\tthen\n0\ta\tone\tnative=x\n1\tb\ttwo\tnative=y\n")
    new = read_expanded(
        "cell\tstate\tn\trule\tthen\n0\ta\t1\tone\tnative=x\n1\ta\t2\tone\tnative=z\n2\tb\t1\ttwo\tnative=y\n"
    )
    assert isinstance(old, Expanded)
    sides = ({("p", "t"): old}, {("p", "t"): new})
    before, after = sides[::-1] if swapped else sides
    groups = compare(before, after)
    assert [(group.change, len(group.combinations)) for group in groups] == [
        ("native: z -> x" if swapped else "native: x -> z", 1)
    ]
    assert write_groups(groups, before, after)[0].startswith("t in p: 1 combination: state a")


def test_new_gone_and_impossible() -> None:
    first = read_expanded("cell\tstate\trule\tthen\n0\ta\tone\tnative=x\n")
    two = read_expanded("cell\tstate\trule\tthen\n0\ta\tone\tnative=x\n1\tb\tone\tnative=x\n")
    assert [group.change for group in compare({("p", "t"): first}, {("p", "t"): two})] == ["was impossible"]
    assert [group.change for group in compare({("p", "t"): two}, {("p", "t"): first})] == ["is impossible now"]
    assert [group.change for group in compare({}, {("p", "t"): first})] == ["the table is new"]
    assert write_groups(compare({("p", "t"): first}, {}), {}) == ["t in p: the table is gone"]
