"""What `explain` understands, and the runners-up that it names."""

from __future__ import annotations

import io

import pytest

from mappings.language.vocabulary import TABLES
from mappings.tools.commands import main
from mappings.tools.facts import UnknownFact, read_question

GIVEN = ("state", "already_settled", "subscription", "source_durability", "receiver_settle_mode")
LINK = ["already_settled=no", "subscription=durable", "source_durability=configuration", "receiver_settle_mode=first"]


def explain(*argv: str) -> str:
    out = io.StringIO()
    assert main(["explain", *argv], out) == 0
    return out.getvalue()


def test_the_flags_of_modified_are_part_of_the_state() -> None:
    words = ["state=modified", "undeliverable_here=true", *LINK, "profile=um-9.12"]
    question = read_question(words)
    assert (question.table, question.profile) == ("settle", "um-9.12")
    assert question.facts["state"] == "modified-undeliverable"
    both = read_question(["settle", "state=modified", "undeliverable_here=yes", "delivery_failed=true"])
    assert both.facts == {"state": "modified-failed-undeliverable"}
    assert read_question(["default_outcome=modified", "delivery_failed=false"]).facts["default_outcome"] == "modified"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no table and no fact is given; write one of attach"),
        (
            ["presettled=no"],
            "several tables know these facts; write one of publish, published, coordinate, posted before them",
        ),
        (["fault=idle", "state=accepted"], "no one table has all of fault, state"),
        (["sate=accepted"], "there is no axis sate; write state"),
        (["state=acepted"], "there is no state acepted; write accepted"),
        (["state=accepted", "undeliverable_here=true"], "belong to state modified; write state=modified"),
        (["state=modified", "undeliverable_here=maybe"], "there is no undeliverable_here maybe"),
        (["state=accepted", "profile=um-9.13"], "there is no profile um-9.13; write um-9.1"),
    ],
)
def test_what_it_does_not_understand_is_named(words: list[str], message: str) -> None:
    with pytest.raises(UnknownFact) as error:
        read_question(words)
    assert message in str(error.value)


def test_the_decision_and_the_one_condition_that_failed_elsewhere() -> None:
    link = [f"{axis}={values[0]}" for axis, values in TABLES["settle"].axes.items() if axis not in GIVEN]
    output = explain("state=modified", "undeliverable_here=true", *LINK, *link, "profile=um-9.12")
    assert "rule undeliverable-durable-returns-elsewhere (" in output
    runners_up = output.split("runners-up, each with the one condition that failed\n")[1].splitlines()
    assert len(runners_up) == 6
    nearest = ("undeliverable-queue-returns-elsewhere", "subscription is durable, not queue")
    assert any(nearest[0] in line and line.endswith(nearest[1]) for line in runners_up[:5]), runners_up
    assert all(line.count(" is ") == 1 for line in runners_up[:5])
    assert runners_up[5].startswith("  and ")


def test_a_rule_that_two_conditions_keep_away_is_no_runner_up() -> None:
    output = explain("fault", "fault=idle")
    assert output.count("fault is idle, not") == 5
    assert output.endswith(f"  and {len(TABLES['fault'].axes['fault']) - 6} more\n")
    output = explain("settled", "operation=return", "answer=done", "peer_settled=no")
    assert "answer is done, not access-denied" in output
