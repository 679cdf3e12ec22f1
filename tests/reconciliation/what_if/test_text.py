"""The answer in words: what each value of a fact leads to, names that break no terminal, and when all is alike."""

from __future__ import annotations

from typing import Any

from reconciliation.what_if import text
from reconciliation.what_if.document import document, is_alike
from reconciliation.what_if.job import Answer, Changed, Line, Question
from reconciliation.what_if.recorded import Recorded
from reconciliation.what_if.verdict import Verdict, decide
from tests.reconciliation.what_if import deciding
from tests.reconciliation.what_if.deciding import compiled, expanded

FAILED = {
    "subscription": "queue", "source_durability": "none", "receiver_settle_mode": "first", "cause": "disposition",
    "state": "modified-failed", "default_outcome": "unset", "in_transaction": "no", "attempts": "below",
    "answer": "done", "peer_settled": "no",
}  # fmt: skip
EXAMPLE = {"at": 1, "run": "19aa-0001", "seq": 7, "eid": -1, "store": 12, "link": "from-orders"}


def recorded(profile: str) -> Recorded:
    return deciding.settle(compiled(profile), FAILED).recorded("subscribe", "disposition", False, profile)


def told(own: str, other: str, unread: tuple[str, ...] = ()) -> dict[str, Any]:
    verdict: Verdict = decide(recorded(own), expanded(own), expanded(other))
    answer = Answer(own={own: expanded(own)}, at_first=1, at_last=1)
    answer.digests[own] = 5
    answer.deliveries.add(verdict, 5)
    if verdict.kind != "alike":
        lines = [Line("orders\n", None, "c" * 50, 3, EXAMPLE)]
        answer.changes.append(Changed("delivery", "subscribe", verdict, 5, 2, lines))
    return document(answer, Question("ours", expanded(other)), "embedded in realm", unread)


def test_each_value_of_a_fact_is_a_paragraph() -> None:
    words = text.write(told("um-9.12", "extended"))
    assert (
        "   not recorded: whether one more failed attempt would have been the last (attempts)\n"
        "   attempts below: as recorded\n"
        "   attempts last:\n"
        "      rule       settle.modified-failed-returns -> settle.last-attempt-failed-dead-letters\n"
        "      operation  return -> dead-letter\n"
        "      outcome    modified -> not recorded: the realm's answer to dead-letter\n"
    ) in words
    assert "not decidable           5\n" in words and "--assume FACT=VALUE" in words


def test_names_are_escaped_and_cut_and_the_rest_is_a_sum() -> None:
    words = text.write(told("um-9.12", "extended"))
    [line] = [line for line in words.splitlines() if "realmgate trace" in line]
    assert line.split() == ["3", '"orders\\n"', "-", "c" * 37 + "...", "realmgate", "trace", "19aa-0001:7"]
    assert "   2 more, at other nodes and peers: 1\n" in words


def test_what_could_not_be_read_may_be_different() -> None:
    assert is_alike(told("extended", "extended"))
    assert not is_alike(told("um-9.12", "extended")), "not decidable is not alike"
    unread = told("extended", "extended", ("um.outcomes, offsets 1 to 2: gone",))
    assert not is_alike(unread) and "Not read: um.outcomes, offsets 1 to 2: gone\n" in text.write(unread)
