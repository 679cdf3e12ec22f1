"""Documents on fixed facts: the board, problems, and that HTML and JSON say the same, escaped."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import orjson
import pytest

from console.facts.errors import Board, Shown
from console.facts.gateway import Gateway
from console.facts.rules import Tables
from console.pages.all import PAGES
from console.pages.view import View
from console.pages.words import change, clock, duration, octets, some
from console.web.render import Pages
from gateway.verdict.answers import read_health
from gateway.verdict.reports import Report
from gateway.verdict.samples import quantile_s, read_samples
from tests.console.fixed import METRICS, MISSPELT, NOW_US, REFUSED, RUN, SECOND_US, error, gateway, health, view

MARKUP = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Tables.load(None)


@pytest.fixture(scope="module")
def pages() -> Pages:
    return Pages()


def rendered(pages: Pages, model: View, path: str) -> tuple[dict[str, Any], str]:
    document = PAGES[path].make(model)
    main = pages.main(document, path, dict(model.query))
    html = pages.whole(document, main, path, dict(model.query), live=True, login=False, stream="/stream?page=%2F")
    return document, html


def words(html: str) -> str:
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)))


def test_the_board_tells_fatal_from_transient() -> None:
    document = PAGES["/errors"].make(view(gateway()))
    by_class = {group["class"]: group["rows"] for group in document["groups"]}
    [full] = by_class["transient"]
    assert (full["condition"], full["code"], full["rule"], full["count"], full["change"]) == (
        "amqp:resource-limit-exceeded", "capacity-reached", "published.capacity-reached-rejected", 3, "new",
    )  # fmt: skip
    assert full["nodes"] == [{"node": "small", "count": 3}]
    assert full["who"] == [{"container": "erp-export-1", "user": "erp", "address": "10.20.8.12", "count": 3}]
    assert full["examples"][0]["trace"] == f"realmgate trace {RUN}:3"
    assert full["gateways"] == {"gw-a:9464": 3}
    fatal = {row["code"] or row["condition"]: row for row in by_class["fatal"]}
    assert fatal["amqp:not-found"]["nodes"] == [{"node": "oders", "count": 1}], "the name that is no node's"
    assert fatal["failed-login"]["who"][0]["user"] == "ann"
    assert fatal["failed-login"]["decided_by"] == ""
    assert document["charts"][0]["count"] == 2 and document["charts"][1]["series"][-3] == 3


def test_a_fault_of_a_peer_is_on_the_board_once() -> None:
    """Its rule and its kind count it, each in a counter of its own; an assertion has no rule."""
    labels = 'class="fatal",code="over-credit",condition="amqp:link:transfer-limit-exceeded",node="small"'
    metrics = (
        f'{METRICS}realmgate_errors_total{{{labels},rule="fault.over-credit"}} 2.0\n'
        'realmgate_peer_faults_total{fault="over-credit"} 2.0\nrealmgate_peer_faults_total{fault="assertion"} 1.0\n'
    )
    broken = error(
        4, "fault", 30, user="shop", container="shop-batch-1", address="10.20.4.17", node="small", link="to-small",
        condition="amqp:link:transfer-limit-exceeded", rule="fault.over-credit", fault="over-credit", count=2,
    ) | {"class": "fatal"}  # fmt: skip
    board = Board([gateway(metrics=metrics, errors=[broken])], Shown(NOW_US, 30))
    rows = {row["code"]: (row["condition"], row["decided_by"], row["count"]) for row in board.rows if row["code"]}
    assert len([row for row in board.rows if row["code"] == "over-credit"]) == 1
    assert rows["over-credit"] == ("amqp:link:transfer-limit-exceeded", "fault.over-credit", 2)
    assert rows["assertion"][2] == 1
    assert sum(row["count"] for row in board.rows) == 1 + 3 + 1 + 2 + 1


def test_the_board_adds_gateways_and_shows_one() -> None:
    both = gateway(1), gateway(2)
    row = Board(both, Shown(NOW_US, 30)).rows[0]
    assert (row["count"], row["gateways"]) == (6, {"gw-a:1": 3, "gw-a:2": 3})
    assert Board(both, Shown(NOW_US, 30, "gw-a:2")).rows[0]["count"] == 3


def test_indeterminate_is_a_class_of_its_own() -> None:
    unknown = {**REFUSED, "id": f"{RUN}.9", "native": "_MSG_TIMED_OUT", "answer": "indeterminate", "condition": None}
    rows = Board([gateway(errors=[unknown])], Shown(NOW_US, 30)).rows
    assert "indeterminate" in {row["class"] for row in rows}


def test_before_is_unknown_where_nothing_is_known_of_it() -> None:
    assert Board([gateway()], Shown(NOW_US, 60)).rows[0]["before"] is None
    assert Board([gateway()], Shown(NOW_US, 30)).rows[0]["before"] == 0


def test_problems_have_who_rule_and_remedy() -> None:
    problems = {problem.kind: problem for problem in view(gateway()).problems}
    assert problems["node-unknown"].words == "oders does not exist."
    assert problems["node-unknown"].more == "The nearest name is orders."
    assert problems["node-unknown"].who == "shop-batch-1, user shop, 10.20.4.17"
    assert problems["node-unknown"].remedy.startswith("there is no node oders")
    assert all(problem.rule and problem.remedy for problem in problems.values()), problems
    assert (problems["node-unknown"].node, problems["node-unknown"].user, problems["node-unknown"].container) == (
        "oders", "shop", "shop-batch-1",
    )  # fmt: skip
    assert problems["node-full"].count == 3 and problems["node-full"].klass == "transient"
    assert "ann" in problems["login-failed"].words
    assert "the oldest for 1,080 s" in problems["held-unsettled"].words and problems["held-unsettled"].klass == "slow"
    assert "no credit for 90 s" in problems["slow-consumer"].words
    assert [*problems][-1] in ("held-unsettled", "slow-consumer"), "what is merely slow comes last"


def test_what_may_lose_messages_comes_first() -> None:
    trouble = {
        "kind": "topic-missing",
        "about": "parts",
        "detail": "gone",
        "remedy": "restore it",
        "since_us": NOW_US - SECOND_US,
    }
    [first, *_] = view(gateway(state="degraded", problems=[trouble])).problems
    assert (first.kind, first.loses, first.remedy) == ("topic-missing", True, "restore it")


def test_the_overview_names_the_nodes_of_a_problem(pages: Pages) -> None:
    """A log that does not answer concerns several nodes, and its sentence names none."""
    lost = {
        "kind": "log-unreachable", "about": "", "detail": "no broker answers", "remedy": "start it",
        "since_us": NOW_US - SECOND_US,
    }  # fmt: skip
    stuck = [
        error(number, "delivery", 0, node=node, answer="unavailable")
        for number, node in ((91, "orders"), (92, "bills"))
    ]
    _, html = rendered(pages, view(gateway(state="degraded", problems=[lost], errors=stuck)), "/")
    [row] = re.findall(r'<tr[^>]*data-key="problem log-unreachable.*?</tr>', html, re.S)
    assert "nodes bills, orders" in words(row)


def test_all_problems_can_be_listed(pages: Pages) -> None:
    troubles = [
        {"kind": "topic-missing", "about": f"q-{number}", "detail": f"the topic of q-{number} is gone",
         "remedy": "restore it", "since_us": NOW_US - SECOND_US}
        for number in range(40)
    ]  # fmt: skip
    degraded = gateway(state="degraded", problems=troubles)
    document, html = rendered(pages, view(degraded), "/")
    assert document["open"]["count"] >= 40 and len(document["open"]["first"]) == 12
    assert '<a href="/?problems=all">and 33 more</a>' in html
    document, html = rendered(pages, view(degraded, problems="all"), "/")
    assert len(document["open"]["first"]) == document["open"]["count"] and "and 33 more" not in html
    assert all(f"the topic of q-{number} is gone" in words(html) for number in range(40))


def test_how_transactions_ended_is_shown(pages: Pages) -> None:
    document, html = rendered(pages, view(gateway()), "/")
    assert document["panels"]["transactions"]["ended"] == {"committed": 3, "expired": 1}
    assert "committed, since 22:44:12 3 expired, since 22:44:12 1" in words(html)
    assert "commit p50, p99 25 ms, 250 ms" in words(html)
    other = PAGES["/"].make(view(gateway(), gateway(2, metrics="")))["panels"]["transactions"]["commit"]
    assert [row["gateway"] for row in other] == ["gw-a:9464"], "of the one that has committed"


def test_when_a_node_will_be_full_is_shown(pages: Pages) -> None:
    """A hundred messages in ten minutes, and nine hundred to go; the other node gets none."""
    lines = {
        events: read_samples(
            f'realmgate_node_events{{node="q"}} {events}\nrealmgate_node_events_limit{{node="q"}} 1000\n'
            'realmgate_node_events{node="idle"} 7\nrealmgate_node_events_limit{node="idle"} 10\n'
        )
        for events in (0, 50, 100, 1000)
    }
    filling = Gateway("http://gw-a:9464")

    def answered(events: int, seconds_ago: int) -> None:
        answer = read_health(orjson.dumps(health()))
        filling.answered(NOW_US - seconds_ago * SECOND_US, answer, lines[events], [], 0.0)

    def full_in_s() -> dict[str, float | None]:
        rows = PAGES["/nodes"].make(view(filling))["rows"]
        return {row["node"]: row["full_in_s"] for row in rows}

    answered(0, 601)
    assert full_in_s() == {"q": None, "idle": None}, "one reading has no rate"
    answered(50, 300)
    answered(100, 1)
    assert full_in_s() == {"q": 5400.0, "idle": None}
    document, html = rendered(pages, view(filling), "/")
    assert document["panels"]["capacity"][1]["full_in_s"] == 5400.0
    assert "q 10 % 1,000 90 min" in words(html)
    assert "full in 90 min at this rate" in words(rendered(pages, view(filling), "/nodes")[1])
    answered(1000, 0)
    assert full_in_s()["q"] == 0


def test_the_partitions_of_a_node_share_its_capacity() -> None:
    """The second one is still being counted at first: what it holds then is no rise."""
    parts = [
        "".join(f'realmgate_node_events_limit{{node="q",partition="{number}"}} 100\n' for number in range(2)),
        'realmgate_node_events{node="q",partition="0"} 20\n', 'realmgate_node_events{node="q",partition="1"} 60\n',
        'realmgate_node_events{node="other",partition="other"} 70\n'
        'realmgate_node_events_limit{node="other",partition="other"} 60\n',
    ]  # fmt: skip
    filling = Gateway("http://gw-a:9464")
    for seconds_ago, count in ((300, 2), (120, 4), (0, 4)):
        samples = read_samples("".join(parts[:count]))
        filling.answered(NOW_US - seconds_ago * SECOND_US, read_health(orjson.dumps(health())), samples, [], 0.0)
    rows = {row["node"]: row for row in PAGES["/nodes"].make(view(filling))["rows"]}
    assert (rows["q"]["events_limit"], rows["q"]["used"], rows["q"]["full_in_s"]) == (100, 0.8, None)
    assert rows["other"]["full_in_s"] is None, "several nodes are not full together"


def test_a_gateway_that_does_not_answer_is_a_problem_and_keeps_its_numbers() -> None:
    gone = gateway()
    gone.failed(NOW_US, "no answer to /health within 5 s")
    document = PAGES["/"].make(view(gone))
    assert document["verdict"]["sentence"].startswith("No gateway answers.")
    assert document["silent"] == ["gw-a:9464"]
    assert document["open"]["first"][0]["kind"] == "gateway-gone"
    assert document["panels"]["errors"][0]["count"] == 3, "history"


def test_gateways_that_decide_by_other_tables_are_named() -> None:
    other = gateway(2, tables={"digest": "f" * 32, "profile": "extended"})
    assert "tables-differ" in {problem.kind for problem in view(gateway(1), other).problems}
    assert PAGES["/gateways"].make(view(gateway(1), other))["differing"] == ["digest"]


def test_entries_that_are_old_are_no_problem() -> None:
    old = [{**MISSPELT, "at_us": NOW_US - 3600 * SECOND_US}]
    assert "node-unknown" not in {problem.kind for problem in view(gateway(errors=old)).problems}


def test_a_report_that_cannot_be_read_is_a_problem_and_no_verdict(pages: Pages) -> None:
    unread = Report("r", Path("r"), 0, "/reports cannot be read: Permission denied")
    made = View([gateway()], [unread], None, NOW_US, {}, has_reports=True)
    assert [problem.kind for problem in made.problems if "reconciliation" in problem.kind] == ["reconciliation-unread"]
    overview = words(rendered(pages, made, "/")[1])
    assert "Unknown: there is no report" in overview and "/reports cannot be read: Permission denied." in overview
    page = words(rendered(pages, made, "/reconciliation")[1])
    assert "Unknown. There is no report that can be read." in page and "Permission denied" in page


def test_a_reconciliation_that_is_not_clean_is_a_problem() -> None:
    report = Report("r", Path("r"), NOW_US, verdict="not clean", sentence="4 lost writes", classes=[{"class": "P1"}])
    made = View([gateway()], [report], None, NOW_US, {}, has_reports=True)
    assert made.problems[0].kind == "reconciliation" and made.problems[0].loses


def acknowledged(until: str) -> View:
    """The last reconciliation was clean but for a finding, which is acknowledged until that day."""
    entry = {"id": "P1-5a31c8e07f", "node": "orders", "until": until, "by": "ann", "reason": "disk <3>", "messages": 3,
             "acknowledged": 3, "expired": False, "found": True}  # fmt: skip
    since = {"new": 0, "grown": 0, "reopened": 0, "same": 1, "gone": 2}
    report = Report("r", Path("r"), NOW_US, verdict="clean but for acknowledged", sentence="Acknowledged: 3 x P1.",
                    classes=[{"class": "P1", "severity": "C", "count": 3, "nodes": ["orders"]}], acknowledged=3,
                    entries=[entry], since=since)  # fmt: skip
    return View([gateway()], [report], None, NOW_US, {}, has_reports=True)


def test_what_is_acknowledged_is_no_problem_and_not_hidden(pages: Pages) -> None:
    made = acknowledged("2026-11-24")
    assert not {"reconciliation", "acknowledgement-expired"} & {problem.kind for problem in made.problems}
    html = rendered(pages, made, "/reconciliation")[1]
    sentence = words(html)
    assert "Clean but for acknowledged." in sentence and "disk &lt;3&gt;" in html
    assert "0 new, 0 grown, 1 the same, 2 gone." in sentence
    assert "P1-5a31c8e07f" in sentence and "2026-11-24" in sentence
    assert "clean but for acknowledged" in words(rendered(pages, made, "/")[1])


def test_an_acknowledgement_that_has_expired_since_is_a_problem() -> None:
    [expired] = [problem for problem in acknowledged("2026-11-23").problems if problem.kind.startswith("ack")]
    assert expired.more == "P1-5a31c8e07f" and "acknowledge it anew" in expired.remedy


@pytest.mark.parametrize("path", PAGES)
def test_html_and_json_say_the_same(path: str, pages: Pages, tables: Tables) -> None:
    made = view(gateway(1), gateway(2), q="small" if path == "/find" else "", node="")
    made.tables = tables
    if path == "/errors/one":
        made.query = {"class": "transient", "condition": "amqp:resource-limit-exceeded", "code": "capacity-reached",
                      "rule": "published.capacity-reached-rejected"}  # fmt: skip
    document, html = rendered(pages, made, path)
    assert orjson.loads(orjson.dumps(document))["page"] == document["page"]
    assert document["title"] in words(html)
    for entry in document["gateways"]:
        assert entry["name"] in html and entry["age_s"] == 1.0
    assert "1 s ago" in words(html)
    assert "<script>" not in html and " style=" not in html and "onclick" not in html
    for row in document.get("rows") or ():
        if row.get("node"):
            assert row["node"] in html


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_whole_when_nothing_is_known(path: str, pages: Pages, tables: Tables) -> None:
    from console.facts.gateway import Gateway

    made = View([Gateway("http://gw-a:1")], [], tables, NOW_US, {})
    _, html = rendered(pages, made, path)
    assert "not asked yet" in words(html)


@pytest.mark.parametrize("path", PAGES)
def test_what_peers_write_is_escaped(path: str, pages: Pages) -> None:
    odd = error(7, "attach", 1, user=MARKUP, container=MARKUP, node=MARKUP, text=MARKUP, rule=MARKUP, remedy=MARKUP,
                condition=MARKUP, direction="publish", answer=MARKUP, link=MARKUP, address=MARKUP)  # fmt: skip
    metrics = f'realmgate_node_events{{node="{MARKUP}"}} 4\nrealmgate_node_events_limit{{node="{MARKUP}"}} 5\n'
    made = view(gateway(errors=[odd], metrics=metrics), q="alert" if path == "/find" else "")
    if path == "/errors/one":
        made.query = {"class": "fatal", "condition": MARKUP, "code": MARKUP, "rule": MARKUP}
    _, html = rendered(pages, made, path)
    assert MARKUP not in html and "<script>" not in html


def test_a_filter_finds_its_rows_only() -> None:
    document = PAGES["/errors"].make(view(gateway(), q="erp-export small"))
    assert [len(group["rows"]) for group in document["groups"]] == [0, 1, 0, 0]
    refusals = PAGES["/refusals"].make(view(gateway(), q="oders", kind="attach"))
    assert (refusals["matching"], refusals["rows"][0]["node"]) == (1, "oders")
    assert PAGES["/links"].make(view(gateway(), show="holds"))["matching"] == 1


def test_rules_have_their_hits_and_what_they_inherit(tables: Tables) -> None:
    made = view(gateway(), table="published", answer="capacity-reached", presettled="no")
    made.tables = tables
    document = PAGES["/rules"].make(made)
    [table] = [group for group in document["groups"] if group["table"] == "published"]
    stored = next(row for row in table["rows"] if row["rule"] == "stored-accepted")
    assert (stored["in_this_run"], stored["profile"], stored["file"]) == (2, "um-9.9", "published.yaml")
    assert {row["profile"] for row in table["rows"]} > {"um-9.9"}
    assert any("capacity-reached-rejected" in line for line in document["explain"]["lines"])
    assert document["explain"]["command"].startswith("realmgate mappings explain published answer=capacity-reached")
    assert document["in_force"][0]["is_shown"] == (tables.digest("extended") == document["in_force"][0]["digest"])


def test_explain_on_whole_facts_is_the_command_lines_text(tables: Tables) -> None:
    facts = {"answer": "capacity-reached", "sender_settle_mode": "mixed", "presettled": "no", "rejected": "agreed",
             "released": "agreed"}  # fmt: skip
    lines = tables.explained("published", "extended", "", facts)
    assert any(line.startswith("rule capacity-reached-rejected") for line in lines)
    assert any("because" in line for line in lines)


def test_find_has_problems_first() -> None:
    rows = PAGES["/find"].make(view(gateway(), q="oders"))["rows"]
    assert rows[0]["kind"] == "problem" and rows[0]["text"] == "oders does not exist."
    assert PAGES["/find"].make(view(gateway(), q=f"{RUN}:3"))["trace"] == f"realmgate trace {RUN}:3"


def test_latency_and_the_oldest_message_are_shown_where_gateways_say_them(pages: Pages) -> None:
    document, html = rendered(pages, view(gateway()), "/gateways")
    [column] = document["columns"]
    assert (column["accept_p50_ms"], column["accept_p99_ms"], column["settle_p99_ms"]) == (1.0, 100.0, None)
    assert "1 ms, 100 ms" in words(html)
    ages = {row["node"]: row["oldest_s"] for row in PAGES["/nodes"].make(view(gateway()))["rows"]}
    assert ages == {"orders": 7200.0, "small": None}
    assert [row["oldest_s"] for row in PAGES["/durables"].make(view(gateway()))["rows"]] == [61.0]
    assert quantile_s(read_samples('x_bucket{le="+Inf"} 3\n'), "x", 0.5) is None
    assert quantile_s(read_samples('x_bucket{le="1"} 1\nx_bucket{le="+Inf"} 3\n'), "x", 0.9) == 1.0


def test_words() -> None:
    assert [duration(seconds) for seconds in (0, 0.3, 2, 119, 2_040, 7_260, 200_000, None)] == [
        "0 s", "0.3 s", "2 s", "119 s", "34 min", "2 h 1 min", "2 d 7 h", "unknown",
    ]  # fmt: skip
    assert [change(*pair) for pair in ((3, 0), (3, 3), (20, 10), (3, 1), (15, 10), (4, None))] == [
        "new", "0", "\u00d7 2", "+2", "+50 %", "unknown",
    ]  # fmt: skip
    assert octets(1536) == "1.5 KiB" and some(["a", "b", "c"]) == "a, b + 1"
    assert clock(NOW_US, NOW_US) == "22:54:12" and clock(NOW_US - 86_400 * SECOND_US, NOW_US) == "2026-11-23 22:54"
