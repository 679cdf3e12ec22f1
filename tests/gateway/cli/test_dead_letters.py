"""Dead letters on the command line: what `queue peek` says of them, and which of them `--where` means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.cli.dead_letters.peeked import WIDTH
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import BAD, WORDS, error, given_back
from tests.kit.wire.peer import Peer
from transformers.codec import Symbol

PARTITIONS = pytest.mark.parametrize("partitions", [1, 3], ids="on-{}".format)


def with_letters(gateway: GatewayProcess, partitions: int = 1) -> None:
    """Of three messages: one with an error, one without, one with another error; and one that is no dead letter."""
    options = ("--partitions", str(partitions)) if partitions > 1 else ()
    gateway.command("node", "create", "dead", *options)
    gateway.command("node", "create", "orders", "--dead-letter", "dead", *options)
    long = error("app:very-long-condition-that-is-not-read-to-its-end", "\x1b[31m" + "and so on " * 20)
    given_back(gateway, "orders", BAD, frames.state("rejected"), frames.state("rejected", long))
    with Peer(gateway.port) as peer:
        peer.stored("dead", frames.message(b"no letter"))


def peeked(gateway: GatewayProcess, *words: str) -> list[dict[str, Any]]:
    return list(json.loads(gateway.command("queue", "peek", "dead", "--json", *words)))


@PARTITIONS
def test_peek_says_who_gave_a_dead_letter_up_and_why(new_gateway: StartGateway, partitions: int) -> None:
    gateway = new_gateway("embedded")
    with_letters(gateway, partitions)
    letters = {message["body"]: message["dead_letter"] for message in peeked(gateway)}
    assert set(letters) == {"0", "1", "2", "no letter"}
    letter = letters["0"]
    assert {name: letter[name] for name in ("cause", "condition", "reason", "info", "node", "durable", "attempts")} == {
        "cause": "rejected",
        "condition": "app:bad",
        "reason": WORDS,
        "info": {"order": 4711, "octets": "01ff"},
        "node": "orders",
        "durable": "queue",
        "attempts": 1,
    }
    assert letter["time"].endswith("Z") and 0 <= letter["age_s"] < 3600 and letter["eid"] >= 0
    assert (letters["1"]["condition"], letters["1"]["reason"], letters["1"]["info"]) == (None, None, None)
    assert letters["no letter"] is None


@PARTITIONS
def test_the_table_of_dead_letters_fits(new_gateway: StartGateway, partitions: int) -> None:
    gateway = new_gateway("embedded")
    with_letters(gateway, partitions)
    titles, *rows = gateway.command("queue", "peek", "dead").splitlines()
    assert titles.split() == ["EID", "AGE", "CAUSE", "ORIGIN", "ATTEMPTS", "CONDITION", "REASON", "BODY"]
    assert len(rows) == 4 and max(map(len, rows)) <= WIDTH
    assert all(row.isprintable() for row in rows)
    [bad] = [row for row in rows if "app:bad" in row]
    assert bad.split()[2:5] == ["rejected", "orders", "1"] and WORDS in bad
    [plain] = [row for row in rows if row.endswith("no letter")]
    assert plain.split()[2:7] == ["-"] * 5


@PARTITIONS
def test_where_names_the_messages_that_are_shown(new_gateway: StartGateway, partitions: int) -> None:
    gateway = new_gateway("embedded")
    with_letters(gateway, partitions)
    for where, bodies in {
        "amqp.dead_letter_condition = 'app:bad'": ["0"],
        "amqp.dead_letter_node = 'orders' AND amqp.dead_letter_condition IS NULL": ["1"],
        "amqp.dead_letter_cause IS NULL": ["no letter"],
        "amqp.dead_letter_cause = 'rejected'": ["0", "1", "2"],
        "colour = 'red'": [],
    }.items():
        assert sorted(message["body"] for message in peeked(gateway, "--where", where)) == bodies, where
    assert len(peeked(gateway, "--where", "amqp.dead_letter_cause = 'rejected'", "--count", "2")) == 2
    with pytest.raises(RuntimeError, match=r"--where: selector at character 5"):
        gateway.command("queue", "peek", "dead", "--where", "a = ")


def test_annotations_that_a_publisher_wrote_make_no_dead_letter(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded")
    forged = frames.annotated({Symbol("x-opt-dead-letter-cause"): "rejected"})
    with Peer(gateway.port) as peer:
        gateway.command("node", "create", "dead")
        peer.stored("dead", forged)
    [message] = peeked(gateway)
    assert (message["body"], message["dead_letter"]) == ("body", None)
