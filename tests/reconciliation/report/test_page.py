"""The page: what is wrong comes first, each cause once, nothing that is acknowledged is left out, and what was not
checked is said. `test_page_in_a_browser.py` looks at it."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest

from reconciliation.history.acknowledged import parse
from reconciliation.history.acknowledging import with_entry
from reconciliation.history.kept import Damaged, Kept, keep, read
from reconciliation.history.standing import day_at
from reconciliation.model.classes import ORDER, is_anomaly
from reconciliation.model.folder import LocalFolder
from reconciliation.model.ranges import Unread
from reconciliation.report import page, summary
from reconciliation.report.pieces.books import OPEN_MAX
from reconciliation.report.pieces.checks import all_checks
from reconciliation.report.result import Result
from tests.reconciliation.history.runs import AT_US, DAY_US, causes, row
from tests.reconciliation.report.made import LONG, Made, node, tally
from tests.reconciliation.report.thousand import lost_in, thousand


def words(html: str) -> str:
    """What a reader sees of it; what is folded, too."""
    text = re.sub(r"<style>.*?</style>|<title>.*?</title>", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", text)))


def open_words(html: str) -> str:
    """Without what is folded."""
    return words(re.sub(r"<details>.*?</details>", "", html, flags=re.DOTALL))


def headings(html: str) -> list[str]:
    return [unescape(heading) for heading in re.findall(r"<h2[^>]*>(.*?)</h2>", html)]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Result:
    return thousand(tmp_path_factory.mktemp("thousand"))


@pytest.fixture(scope="module")
def shown(large: Result) -> str:
    return page.render(large)


def test_what_is_wrong_comes_first(shown: str) -> None:
    assert headings(shown) == [
        "What is wrong", "Acknowledged", "Since the reconciliation before", "Balance sheet",
        "Queues and durable subscriptions", "Errors told to peers", "No anomalies",
        "What was checked, and what could not be", "What was read",
    ]  # fmt: skip
    assert not re.search(r"""(src|href)=["'](?!#)|url\(|@import|<script|\sstyle=""", shown)


def test_one_cause_is_shown_once_with_all_its_places(shown: str) -> None:
    assert shown.count('<section class="cause">') == 5  # P1, P2, A1, Q1, A12
    text = open_words(shown)
    assert text.count("answered stored; the store has no such event") == 1
    assert "40 messages the consumer's acknowledge was answered done" in text
    assert "and 37 more" in text and shown.count("<summary>40 findings with this cause</summary>") == 1


def test_lines_that_close_are_folded_under_a_total(shown: str) -> None:
    text = open_words(shown)
    assert "All 1,004 2 82,286 accepted - 70 anomalies = 82,214 in store" in text
    assert "shop.orders-0033 queue 2 35 accepted = 33 in store" in text
    assert "599 nodes without any event." in text and "<b>shop.orders-0900<" not in shown
    assert "shop.orders-0200" not in text and "shop.orders-0200" in shown
    assert "level 2" in text and LONG in text
    assert text.index("shop.orders-0033 queue") < text.index("shop.orders-0000 queue")


def test_several_rows_of_one_message_are_counted_as_both() -> None:
    rows = [row("A6", eid=17, run="1a-0001", seq=seq, detail="counted as failed") for seq in (3, 5, 9)]
    result = Made(rows=rows).result()
    assert "A6 returned otherwise than told: 3 rows of 1 message (major)" in summary.write(result)
    text = words(page.render(result))
    assert "A6 returned otherwise than told major 3 rows of 1 message" in text
    assert re.search(r"\bAnomalies 1\b", text), "the tile has what the verdict has"


def test_times_and_commands_are_there(shown: str) -> None:
    text = words(shown)
    assert "Made: 2026-11-18 11:06:40 UTC, in 12 s; the last outcome is 90 seconds old." in text
    assert '<code class="cmd">realmgate mappings explain --record 19aa1c2d3e4-7f01:41</code>' in shown
    assert '<code class="cmd">realmgate trace 31:100</code>' in shown
    assert re.search(r'class="cmd">realmgate reconcile --acknowledge P1-[0-9a-f]{10} --until DAY --by NAME', shown)
    assert "<time>2026-11-17 11:06:40 UTC</time>" in shown, "when it was found in the evidence"


def test_the_matrix_goes_by_codes_and_over_time(shown: str) -> None:
    text = words(shown)
    assert (
        "amqp:resource-limit-exceeded capacity-reached shop.orders-0007 is full; shop.orders-0008 is full 160" in text
    )
    assert "amqp:internal-error _MSG_TIMED_OUT 4" in text
    counts = re.search(r'aria-label="amqp:resource-limit-exceeded capacity-reached: ([\d, ]+)"', shown)
    assert counts is not None and counts[1].split(", ") == [*["130", "160", "160"] * 4, "160"]


def test_what_has_changed_is_marked_and_earlier_ones_are_listed(large: Result, shown: str) -> None:
    assert large.since.counts == {"new": 52, "grown": 0, "reopened": 0, "same": 12, "gone": 0}
    assert "10 of 22 findings new or grown" in words(shown)
    assert shown.count("not clean</span></td>") == 8, "ten rows, two of them clean"
    assert "The books have a line that is new or otherwise: shop.orders-0033: 2" in words(shown)


def test_what_is_acknowledged_is_apart_and_counted_where_it_does_not_hold(shown: str) -> None:
    part = words(shown[shown.index('id="acknowledged"') : shown.index('id="trend"')])
    assert "lost with the disk of 3 May <INC-4711>" in part and "&lt;INC-4711&gt;" in shown
    assert "It has grown: 28 of 30 are not acknowledged, and count." in part
    assert "expired after 2026-11-17" in part and "All of it counts again." in part


def test_what_could_not_be_checked_is_reported_where_it_was_asked(large: Result, shown: str) -> None:
    part = words(shown[shown.index('id="checked"') :])
    assert "um.commands: we may not look at this topic: grant Describe and Read on it" in part
    assert part.count("nothing, as far as it was checked") == 3 and "1 trimmed store: of copies there" in part
    assert "no ledgers were given" in part
    assert "1 node with properties that were changed: their own limits" in part
    assert "Never checked, as no record tells" in part and "bodies of events" in part
    left = {check.codes: [*check.left] for check in all_checks(large)}
    assert len(left["S2", "S4"]) == 2 and left["S3",] == []


def test_each_class_belongs_to_a_check(large: Result) -> None:
    codes = [code for check in all_checks(large) for code in check.codes]
    assert sorted(codes) == sorted(code for code in ORDER if is_anomaly(code))


def test_it_stays_small(shown: str) -> None:
    assert len(shown) < 1_000_000


def test_many_bad_lines_are_folded_behind_the_first() -> None:
    rows = [row for number in range(OPEN_MAX + 5) for row in lost_in(number, 1)]
    html = page.render(Made(nodes=OPEN_MAX + 5, rows=rows).result())
    assert "5 nodes more with something wrong" in words(html)


def test_a_clean_realm_is_a_short_page() -> None:
    result = Made(nodes=40, quiet=10).result()
    html = page.render(result)
    assert '<div class="strip good" role="status"><strong>Clean</strong>' in html
    assert "Nothing that was looked at." in words(html) and "Acknowledged" not in headings(html)
    assert "30 nodes with nothing wrong" in words(html) and "10 nodes without any event." in words(html)
    assert "No earlier reconciliation to compare with: 0 findings new." in words(html)


@pytest.mark.parametrize(
    ("days", "eids", "title", "colour"),
    [
        (0, (5, 6), "Clean but for 2 acknowledged", "warn"),
        (1, (5, 6), "Not clean", "bad"),  # it has expired
        (0, (5, 6, 7), "Not clean", "bad"),  # it has grown
    ],
)
def test_the_light_turns_red(days: int, eids: tuple[int, ...], title: str, colour: str) -> None:
    [cause] = causes(lost_in(0, 5, 6))
    content = with_entry(None, "known.yaml", cause, day_at(AT_US), "ann", "INC-1")
    made = Made(rows=lost_in(0, *eids), acknowledged=parse(content, "known.yaml"))
    result = made.result(AT_US + days * DAY_US)
    assert f'<div class="strip {colour}" role="status"><strong>{title}</strong>' in page.render(result)
    assert summary.write(result).startswith(f"Verdict: {title.upper()}. ")
    assert result.verdict.passes is (colour != "bad")


def test_a_damaged_record_is_a_note_and_all_is_new(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    name = keep(folder, Made(rows=lost_in(0, 5)).result(AT_US - DAY_US).record)
    assert Made(rows=lost_in(0, 5), earlier=read(folder)).result().since.counts["same"] == 1
    (tmp_path / name).write_bytes(b"{}")
    result = Made(rows=lost_in(0, 5), earlier=read(folder)).result()
    assert result.since.counts["new"] == 1 and result.since.is_news
    for text in (words(page.render(result)), summary.write(result), summary.since_last(result)):
        assert f"{name} is damaged: it is of version None" in text and "remove it" in text


def test_an_entry_of_nothing_is_to_be_removed() -> None:
    [cause] = causes(lost_in(0, 5))
    until = day_at(AT_US) + timedelta(days=9)
    content = with_entry(None, "known.yaml", cause, until, "ann", "INC-1")
    text = words(page.render(Made(acknowledged=parse(content, "known.yaml")).result()))
    assert "It is not found any more: remove the entry, line 4." in text


def test_names_are_escaped() -> None:
    row = {**lost_in(0, 1)[0], "node": "a<b>&", "detail": "<script>x</script>", "container": '"><i>'}
    errors = [tally("<c>", "<a>", "two <words>", 1, node(0))]
    kept = Kept("<dir>", damaged=[Damaged("<name>", "<why>")])
    unread = [Unread("<topic>", None, "<gone>")]
    html = page.render(Made(rows=[row], tallies=errors, earlier=kept, unread=unread).result())
    assert not re.search(r"<(script|b>&|i>|c>|a>|words|dir|name|why|topic|gone)", html)
    assert "a&lt;b&gt;&amp;" in html
