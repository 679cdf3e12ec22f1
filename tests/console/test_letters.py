"""Dead letters in the console: what the command prints is read with bounds, folded by reason, and escaped."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from console.facts.letters import Stored, asked_of, causes, folded, read_dead_nodes, read_letters
from console.limits import LETTERS_SHOWN
from console.pages.all import PAGES
from console.poll.commands import Commands
from console.poll.fetch import NoAnswer
from console.web.render import Pages
from gateway.verdict.samples import WrongAnswer
from tests.console.fixed import NOW_US, gateway, view
from tests.kit.patience import HANG_S

MARKUP = "<script>alert(1)</script>"


def letter(eid: int, **other: Any) -> dict[str, Any]:
    why = {
        "cause": "rejected", "condition": "app:bad", "reason": f"unknown currency 'XBT' in order {eid}", "info": None,
        "node": "orders", "durable": "queue", "eid": eid, "attempts": 1, "time": "2026-11-24T22:00:00Z",
        "age_s": 60.0 + eid,
    }  # fmt: skip
    sections = {"header": {"durable": True}, "properties": {"message-id": f"m{eid}", "subject": ""}, "body": "{}"}
    return {
        "eid": eid, "partition": 0, "stored": "2026-11-24T22:00:01Z", "failed": 0, "given": False, "key": "k",
        "body": "{}", "octets": 40, "sections": sections, "dead_letter": {**why, **other},
    }  # fmt: skip


def read(*letters: Any) -> list[dict[str, Any]]:
    return read_letters(json.dumps(letters).encode())[0]


def stored(*letters: Any, **other: Any) -> Stored:
    rows, more = read_letters(json.dumps(letters).encode())
    nodes = [{"node": "dead", "messages": len(letters), "of": ["orders"], "partitions": 1}]
    return Stored(True, NOW_US, asked=asked_of({"node": "dead"}), nodes=nodes, rows=rows, more=more, **other)


def test_a_letter_has_its_cause_and_its_sections() -> None:
    [row] = read(letter(7))
    assert (row["cause"], row["node"], row["origin_eid"], row["attempts"], row["age_s"]) == (
        "rejected", "orders", 7, 1, 67.0,
    )  # fmt: skip
    assert row["sections"]["properties"] == {"message-id": "m7", "subject": ""}
    assert row["sections"]["header"] == {"durable": "true"} and row["sections"]["body"] == "{}"


def test_what_is_no_letter_and_what_is_nonsense_is_shown_as_that() -> None:
    plain, odd = read({**letter(1), "dead_letter": None}, {"eid": [], "dead_letter": {"cause": 5, "age_s": "x"}})
    assert (plain["is_letter"], plain["cause"]) == (False, "")
    assert (odd["eid"], odd["cause"], odd["age_s"], odd["sections"]) == (0, "", None, {"body": ""})
    for body in (b"no JSON", b'{"a": 1}'):
        with pytest.raises(WrongAnswer):
            read_letters(body)


def test_pages_are_short_and_lead_on() -> None:
    listing = stored(*(letter(eid) for eid in range(LETTERS_SHOWN + 1)))
    assert (len(listing.rows), listing.next) == (LETTERS_SHOWN, LETTERS_SHOWN)
    assert stored(letter(1)).next is None


def test_reasons_that_differ_in_a_number_are_one_line() -> None:
    [row, other] = causes(read(*(letter(eid) for eid in range(41)), letter(50, reason="no stock")))
    assert (row["count"], row["reason"], row["oldest_s"]) == (41, "unknown currency '...' in order N", 100.0)
    assert (other["count"], other["reason"]) == (1, "no stock")
    assert folded("it's 'a b' \"c\" 'open") == "it's '...' '...' '...'"


def test_the_nodes_that_get_dead_letters() -> None:
    nodes = [
        {"name": "dead", "messages": 3, "partitions": 1, "properties": {}},
        {"name": "late", "messages": 9, "partitions": 3, "properties": {}},
        {"name": "orders", "properties": {"dead_letter": "dead"}},
        {"name": "bills", "properties": {"dead_letter": "dead"}},
        {"name": "x", "properties": {"dead_letter": "late"}}, {"name": "y", "properties": {"dead_letter": "gone"}}, 7,
    ]  # fmt: skip
    rows = read_dead_nodes(json.dumps(nodes).encode())
    assert [(row["node"], row["partitions"], row["of"]) for row in rows] == [
        ("late", 3, ["x"]), ("dead", 1, ["bills", "orders"]),
    ]  # fmt: skip


def html_of(listing: Stored) -> str:
    made = view(gateway())
    made.stored = listing
    return Pages().main(PAGES["/dead"].make(made), "/dead", {})


def test_the_page_shows_letters_and_escapes_them() -> None:
    odd = letter(9, reason=MARKUP, condition=MARKUP, node=MARKUP)
    odd |= {"body": MARKUP, "sections": {"properties": {MARKUP: MARKUP}, "body": MARKUP}}
    html = html_of(stored(letter(3), odd))
    assert "unknown currency" in html and "app:bad" in html and "m3" in html and "<script>" not in html
    assert "realmgate queue resend dead --to-origin --dry-run" in html


@pytest.mark.parametrize(
    ("listing", "words"),
    [
        (Stored(), "without <code>--config FILE</code>"),
        (Stored(True, NOW_US), "No node names a node for its dead letters"),
        (stored(), "No message in dead."),
        (stored(problem="ann may not peek node dead"), "They are not shown: ann may not peek node dead"),
    ],
)
def test_an_empty_page_says_why(listing: Stored, words: str) -> None:
    assert words in html_of(listing)


async def _refused(commands: Commands, *words: str, timeout_s: float = HANG_S) -> str:
    with pytest.raises(NoAnswer) as raised:
        await commands.run(*words, timeout_s=timeout_s)
    return str(raised.value)


def test_a_command_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text("realm: {kind: embedded, path: realm}\n")
    commands = Commands(config)

    async def tried() -> None:
        assert json.loads(await commands.run("node", "list", "--json", timeout_s=HANG_S)) == []
        assert json.loads(await commands.run("audit", "--json", "--since=7d", timeout_s=HANG_S)) == []
        assert "took longer than 0 s" in await _refused(commands, "node", "list", timeout_s=0.001)
        monkeypatch.setattr("console.poll.commands.ANSWER_BYTES", 1)
        assert "larger than 1 octets" in await _refused(commands, "node", "list", "--json")
        monkeypatch.setattr("console.poll.commands.COMMANDS_WAITING", -1)
        assert "other commands are under way" in await _refused(commands, "node", "list")
        assert commands._waiting == 0

    asyncio.run(tried())
    monkeypatch.undo()
    config.write_text("realm: {kind: embedded, path: [\n")
    assert "gateway.yaml" in asyncio.run(_refused(Commands(config), "node", "list"))
