"""The page of the history: bars, gaps and tables on fixed facts; and how it is read of gateways that answer, fall
silent or hang."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.facts.gateway import Gateway
from console.facts.history import STORED, Asked, History, asked_of
from console.limits import HISTORY_KEPT, HISTORY_PAGES, HISTORY_S
from console.pages.all import PAGES
from console.pages.view import View
from console.poll.commands import Commands
from console.poll.fetch import NoAnswer
from console.poll.history_reader import HistoryReader
from console.web.charts import bars
from console.web.render import PART, Pages
from console.web.stream import changed_parts
from gateway.verdict.history import HistoryRow
from native_backend.clock import SystemClock
from tests.console.fixed import NIGHT, NOW_US, RUN, SECOND_US, gateway, history_of, page, reading, view
from tests.console.scripted_admin import http, scripted_admin
from tests.kit.patience import HANG_S

MINUTE_US = 60 * SECOND_US
MARKUP = "<script>alert(1)</script>"


def document(made: View) -> dict[str, Any]:
    return PAGES["/history"].make(made)


def html(made: View) -> str:
    return Pages().main(document(made), "/history", made.query)


def facts(body: dict[str, Any]) -> dict[str, Any]:
    return {fact["name"]: fact["value"] for fact in body["facts"]}


def test_a_time_without_a_record_is_a_gap_and_never_0() -> None:
    body = document(view(gateway()))
    assert (body["span"], body["step"], len(body["times"])) == ("6h", "5min", 72)
    assert facts(body) == {
        "In": 45, "Refused": 3, "Out": 4, "Fatal": 0, "Transient": 3, "Indeterminate": 0, "Dead letters": 4,
        "No record": None,
    }  # fmt: skip
    assert [(gap["why"], round(gap["for_s"] / 60)) for gap in body["gaps"]] == [
        ("stopped", 60), ("none", 120), ("not kept", 59),
    ]  # fmt: skip
    series = {chart["name"]: chart["series"] for chart in body["charts"]}
    assert [*series] == ["in", "out", "fatal", "transient"], "of indeterminate there is none"
    assert sum(value is None for value in series["in"]) > 40 and series["in"].count(40) == 1
    lines = {row["record"] for row in body["times"]}
    assert lines == {"whole", "a part", "none"}
    assert body["times"][0]["record"] == "a part", "the latest comes first, and is under way"
    first, last = body["gap_bars"][0], body["gap_bars"][-1]
    assert first[0] == 0 and 46 < last[0] < 49 and last[1] - last[0] == pytest.approx(12)


def test_the_page_says_where_it_knows_nothing_and_since_when() -> None:
    text = html(view(gateway()))
    assert 'class="gap"' in text and "It is not 0." in text and "no record" in text
    assert "The gateway was down, stopped in order." in text and "counted until 22:53:42" in text
    silent = reading(problem="no answer within 5 s")
    made = view(gateway())
    made.history = History(Asked(), {"gw-a:9464": silent})
    body = document(made)
    assert facts(body)["In"] == 45 and body["gaps"][0]["why"] == "silent"
    assert "cannot be read: no answer within 5 s. Shown is what it answered" in html(made)
    made.history = History(Asked(), {})
    body = document(made)
    assert body["gaps"] == [] and {row["record"] for row in body["times"]} == {"none"}
    assert "its history is being read" in html(made)
    made.history = History(Asked(), {"gw-a:9464": reading(rows=(), state="standby", known_us=None)})
    assert "waits for its realm" in html(made) and not document(made)["gaps"]


def test_gateways_on_one_realm_count_once_and_others_are_added() -> None:
    made = view(gateway(1), gateway(2))
    assert facts(document(made))["In"] == 45 and "they are counted once" in html(made)
    other = reading(history_of("other", 200, 0.5, deliveries=[["in", "far", "accepted", 5]]))
    made.history = replace(made.history, readings={"gw-a:1": reading(), "gw-a:2": other})
    body = document(made)
    assert facts(body)["In"] == 50 and {gap["gateway"] for gap in body["gaps"]} == {"gw-a:1", "gw-a:2"}
    made.query = {"gateway": "gw-a:2"}
    assert facts(document(made))["In"] == 5


def test_where_no_gateway_answers_the_realm_itself_is_shown_and_counts_once() -> None:
    made = view(gateway(1), gateway(2))
    silent = reading(*NIGHT[:1], problem="Connection refused")
    made.history = History(Asked(), {"gw-a:1": silent, "gw-a:2": reading(rows=(), state="standby")}, reading())
    body = document(made)
    assert facts(body)["In"] == 45 and {gap["gateway"] for gap in body["gaps"]} == {STORED}
    assert [row["gateway"] for row in body["readings"]] == [STORED, "gw-a:1", "gw-a:2"]
    text = html(made)
    assert "Read out of the realm itself, without a gateway," in text and "--by 5min --stored" in text
    assert "cannot be read: Connection refused. Its records are shown all the same, if it serves the realm" in text
    made.query = {"gateway": "gw-a:1"}
    assert STORED not in [row["gateway"] for row in document(made)["readings"]], "it may be of another realm"
    made.query = {}
    made.history = replace(made.history, readings={"gw-a:1": silent, "gw-a:2": reading()})
    assert STORED not in [row["gateway"] for row in document(made)["readings"]], "a gateway answers"


def test_where_the_realm_itself_cannot_be_read_either_nothing_is_shown_all_the_same() -> None:
    made = view(gateway(1))
    never = replace(reading(problem="Connection refused"), rows=(), at_us=0, read_us=0)
    unread = replace(never, problem="no such realm")
    made.history = History(Asked(), {"gw-a:1": never}, unread)
    text = html(made)
    assert "<b>The realm itself</b> cannot be read, either: no such realm." in text and "--stored" not in text
    assert "cannot be read: Connection refused. Nothing is known of its history" in text
    made.history = replace(made.history, stored=replace(reading(), problem="no such realm"))
    text = html(made)
    assert "It could not be read again: no such realm." in text and "shown all the same" in text


def test_a_gateway_that_wrote_nothing_and_fell_silent_hides_nothing_of_the_realm() -> None:
    made = view(gateway())
    silent = replace(reading(problem="Connection refused"), rows=())
    made.history = History(Asked(), {"gw-a:9464": silent}, reading())
    assert {gap["why"] for gap in document(made)["gaps"]} == {"stopped", "none", "not kept"}


def test_a_realm_that_was_read_less_far_than_a_gateway_is_not_named() -> None:
    """The command was cut."""
    made = view(gateway())
    made.history = History(Asked(), {"gw-a:9464": reading(problem="slow")}, replace(reading(*NIGHT[1:2]), is_cut=True))
    assert "Read out of the realm itself" not in html(made) and "choose a shorter one" not in html(made)


def test_one_node_alone_and_the_rows_that_lead_there() -> None:
    text = html(view(gateway()))
    assert "/history?node=small" in text and "/errors/one?class=transient" in text
    body = document(view(gateway(), node="orders"))
    assert (facts(body)["In"], facts(body)["Out"], body["errors"], body["nodes"]) == (0, 4, [], [])
    assert body["command"].endswith("--by 5min --node orders")
    rows = [[row["node"], row["in"], row["dead_letters"]] for row in document(view(gateway()))["nodes"]]
    assert rows == [["small", 45, 0], ["orders", 0, 4]]


def test_the_time_is_chosen_in_the_address() -> None:
    assert asked_of({"span": "24h", "to": "2026-11-24T20:00Z"}, NOW_US) == Asked("24h", NOW_US - 10_452 * SECOND_US)
    later, never = {"to": "2027-01-01T00:00Z"}, {"span": "9y", "to": "yesterday"}
    assert asked_of(later, NOW_US) == asked_of(never, NOW_US) == Asked("6h", 0)
    body = document(view(gateway(), span="1h", to="2026-11-24T21:00Z"))
    assert (body["from"][:16], body["to"][:16], body["is_now"]) == ("2026-11-24T20:00", "2026-11-24T21:00", False)
    assert (body["earlier"], body["later"]) == ("2026-11-24T20:00Z", "2026-11-24T22:00Z")
    closer = [row["link"] for row in document(view(gateway(), span="7d"))["times"]]
    assert closer[1] == "/history?span=1h&to=2026-11-24T22%3A00Z" and len(closer) == 168


def test_what_peers_write_is_escaped() -> None:
    odd: dict[str, Any] = {
        "deliveries": [["in", MARKUP, MARKUP, 1]],
        "errors": [[MARKUP, MARKUP, "fatal", MARKUP, MARKUP, 1]],
        "rules": [[MARKUP, MARKUP, 1]],
    }
    made = view(gateway())
    made.history = History(Asked(), {"gw-a:9464": reading(history_of(RUN, 9, 1, **odd), problem=MARKUP)})
    assert MARKUP not in html(made)


def test_a_chart_is_hatched_where_nothing_is_known() -> None:
    drawn = bars([None, 4], "fine", "say", (False, True), [[0, 1]])
    assert drawn.count('class="gap" x="0.0" width="12.0"') == 1 and drawn.count('class="fine"') == 1
    assert 'class="gap"' not in bars([0, 4], "fine", "say")


def test_of_two_weeks_only_what_changed_is_sent() -> None:
    """A reading that says the same, then one with another minute."""
    counts: dict[str, Any] = {"deliveries": [["in", f"n{at}", "accepted", 5] for at in range(20)]}
    hours = [history_of(RUN, 60 * at + 60, 60 * at, **counts) for at in range(330, 0, -1)]
    latest = history_of(RUN, 60, 2, **counts)
    again, minute = replace(latest), history_of(RUN, 60, 1, **counts)

    def parts(newest: HistoryRow, later_s: int) -> list[str]:
        now_us = NOW_US + later_s * SECOND_US
        read = reading(*hours, newest, known_us=hours[0].begin_us, at_us=now_us, read_us=now_us)
        made = replace(view(gateway(), span="14d"), now_us=now_us)
        made.history = History(asked_of(made.query, now_us), {"gw-a:9464": read})
        return html(made).split(PART)

    before = parts(latest, 0)
    whole = sum(map(len, before))
    same = changed_parts(before, parts(again, 2))
    assert whole > 150_000 and 0 < sum(map(len, same.values())) < 4_000
    now = parts(minute, 4)
    changed = changed_parts(before, now)
    assert sum(map(len, changed.values())) < whole / 2, "a minute lies in one bar of each chart, and in one row"
    assert [changed.get(str(at), before[at]) for at in range(len(now))] == now, "joined, it is the page as it is now"
    assert changed_parts([], now) == {str(at): part for at, part in enumerate(now)}


class _Ahead(SystemClock):
    ahead_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.ahead_s


def reads(
    urls: list[str], look: Callable[[HistoryReader, _Ahead], Awaitable[None]], commands: Commands | None = None
) -> None:
    async def run() -> None:
        clock = _Ahead()
        reader = HistoryReader([Gateway(url) for url in urls], clock, commands)
        try:
            async with asyncio.timeout(HANG_S):
                await look(reader, clock)
        finally:
            await reader.stop()

    asyncio.run(run())


def raw(run: str, minute: int) -> dict[str, Any]:
    times = {"begin_us": minute * MINUTE_US, "end_us": (minute + 1) * MINUTE_US}
    runs = [{**times, "run": run, "closed": False}]
    return {"id": str(minute), **times, "runs": runs, "records": 1, "deliveries": [["in", "q", "accepted", 1]]}


def test_all_pages_are_read_once_for_a_while() -> None:
    def paged(path: str) -> bytes:
        after = "after=" in path
        return http(page("history", [raw("a", 7 + after)], next=None if after else "7", known_us=None if after else 5))

    async def look(reader: HistoryReader, clock: _Ahead) -> None:
        await reader.read({})
        await reader.read({})
        [history] = reader.known({}).readings.values()
        assert [row.begin_us for row in history.rows] == [7 * MINUTE_US, 8 * MINUTE_US] and history.known_us == 5
        assert len(admin.asked) == 2 and "step=5min&limit=500&after=7" in admin.asked[1]
        clock.ahead_s = HISTORY_S + 1
        await reader.read({})
        assert len(admin.asked) == 4
        assert not reader.known({"span": "1h"}).readings
        for minute in range(HISTORY_KEPT + 1):
            await reader.read({"to": f"2026-01-01T00:{minute:02}Z"})
        assert not reader.known({}).readings, "the oldest one was given up"

    with scripted_admin(paged) as admin:
        reads([admin.url], look)


def test_so_many_pages_are_read_and_no_more() -> None:
    async def look(reader: HistoryReader, _: _Ahead) -> None:
        await reader.read({})
        [history] = reader.known({}).readings.values()
        assert history.is_cut and len(history.rows) == HISTORY_PAGES == len(admin.asked)

    with scripted_admin(lambda _: http(page("history", [raw("a", 7)], next="7"))) as admin:
        reads([admin.url], look)


def test_what_was_read_stays_when_a_gateway_falls_silent_and_a_hung_one_delays_no_other() -> None:
    answers = [http(page("history", [raw("a", 7)], known_us=5))]

    async def look(reader: HistoryReader, clock: _Ahead) -> None:
        name, hung = (url.removeprefix("http://") for url in (admin.url, silent.url))
        await reader.read({})
        assert len(reader.known({}).of(name).rows) == 1
        assert hung not in reader.known({}).readings, "it has not answered yet"
        await asyncio.gather(*reader.want({}))
        assert "no answer to /api/history" in reader.known({}).of(hung).problem
        answers[0] = http(
            json.dumps({"gateways": [{"problem": "the log does not answer"}]}).encode(), "503 Unavailable"
        )
        clock.ahead_s = HISTORY_S + 1
        await reader.read({})
        history = reader.known({}).of(name)
        assert len(history.rows) == 1 and "the log does not answer" in history.problem

    with scripted_admin(lambda _: answers[0]) as admin, scripted_admin(lambda _: None) as silent:
        reads([admin.url, silent.url], look)


class _Printed(Commands):
    """What the command prints, or why it does not."""

    def __init__(self, answer: bytes | Exception) -> None:
        super().__init__(Path("realmgate.yaml"))
        self.answer, self.asked = answer, list[tuple[str, ...]]()

    async def run(self, *options: str, operands: Sequence[str] = (), timeout_s: float = 0) -> bytes:
        self.asked.append((*options, *operands))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_realm_is_read_only_while_a_gateway_cannot_be_read() -> None:
    whole = page("history", [raw("a", 7), raw("a", 8)], known_us=5, state="stored")
    answers: list[bytes | None] = [http(page("history", [raw("a", 7)]))]
    commands = _Printed(whole)

    async def look(reader: HistoryReader, clock: _Ahead) -> None:
        async def read() -> None:
            clock.ahead_s += HISTORY_S + 1
            await asyncio.gather(*reader.want({}))

        await read()
        assert reader.known({}).stored is None and not commands.asked
        answers[0] = http(b"{}", "503 Unavailable")
        await read()
        [words] = commands.asked
        assert words[:3] == ("history", "--stored", "--json") and words[-1] == "--by=5min"
        stored = reader.known({}).stored
        assert stored is not None and len(stored.rows) == 2 and not stored.problem
        for failure in (NoAnswer("no such realm"), RuntimeError("ours")):
            commands.answer = failure
            await read()
            stored = reader.known({}).stored
            assert stored is not None and len(stored.rows) == 2 and stored.problem, "what was read stays"
        answers[0] = http(page("history", [raw("a", 9)]))
        await read()
        assert reader.known({}).stored is None

    with scripted_admin(lambda _: answers[0]) as admin:
        reads([admin.url], look, commands)
