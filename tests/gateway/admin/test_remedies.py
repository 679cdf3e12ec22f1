"""Every refusal and fault says what to do, and a remedy names no node, user or command that is not there."""

from __future__ import annotations

import re

import pytest

from gateway.admin.remedies import ASK_THE_RULE, CLIENT, OF_ANSWERS, OF_CONDITIONS, OF_FAULTS, remedy_for
from mappings import load_tables
from mappings.language.words import CONDITIONS
from tests.gateway.cli.command_line import Run, config, run

__all__ = ["config", "run"]  # fixtures
TABLES = load_tables()
GOOD = {"done", "ready", "stored", "rolled-back"}
GROUPS = {"acl", "durable", "mappings", "node", "queue", "user"}  # commands that take an action


def answers() -> set[str]:
    values: set[str] = set()
    for table in ("attached", "published", "settled", "committed", "posted"):
        values |= {str(value) for value in TABLES[table].axes["answer"]}
    return values - GOOD


@pytest.mark.parametrize("answer", sorted(answers()))
def test_each_answer_of_the_realm_has_a_remedy(answer: str) -> None:
    assert remedy_for({"answer": answer, "node": "orders", "user": "ann"}) not in ("", ASK_THE_RULE)


def test_what_has_a_remedy_is_in_the_vocabulary() -> None:
    assert OF_ANSWERS.keys() == answers()
    assert OF_CONDITIONS.keys() <= set(CONDITIONS)


def test_a_fault_that_is_not_listed_is_the_clients() -> None:
    assert remedy_for({"fault": "framing"}) == CLIENT
    assert remedy_for({"fault": "failed-login", "condition": "amqp:unauthorized-access"}) == OF_FAULTS["failed-login"]


def test_names_stand_in_the_remedy() -> None:
    facts = {"answer": "access-denied", "node": "orders", "user": "ann", "direction": "publish"}
    assert remedy_for(facts).endswith("realmgate acl grant user:ann publish --node orders")


@pytest.mark.parametrize("text", sorted({*OF_FAULTS.values(), *OF_ANSWERS.values(), *OF_CONDITIONS.values()}))
def test_a_command_that_a_remedy_names_is_one(run: Run, text: str) -> None:
    for command, action in re.findall(r"realmgate ([a-z]+)(?: ([a-z]+))?", text):
        words = [command, action] if command in GROUPS else [command]
        assert run(*words, "--help", configured=False)[0] == 0, words


def test_a_command_that_is_none_is_seen(run: Run) -> None:
    assert run("node", "make", "--help", configured=False)[0] == 2
