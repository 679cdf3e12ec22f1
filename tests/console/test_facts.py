"""What gateways answer is read with bounds, and counters become what happened when."""

from __future__ import annotations

import json

import pytest

from console.facts.gateway import Gateway
from console.facts.rises import MINUTE_US, Rises
from console.limits import KEYS, MINUTES
from gateway.verdict.answers import read_health, read_page, text
from gateway.verdict.limits import ROWS, SAMPLES, TEXT
from gateway.verdict.samples import WrongAnswer, read_samples
from tests.console.fixed import DIGEST, ERRORS, METRICS, NOW_US, RUN, SECOND_US, error, gateway, health, page

KEY = ("faults", "sasl")


def test_samples_are_read_with_their_labels() -> None:
    samples = read_samples(METRICS + 'odd{a="x\\"y\\\\z\\n",b="}, c="} 4 1700000000\nnan NaN\n')
    assert samples.one("realmgate_connections") == 1 and samples.one("no_such") is None
    assert samples.all("realmgate_info")[0][0]["run"] == RUN and samples.all("no_such") == []
    assert samples.all("odd") == [({"a": 'x"y\\z\n', "b": "}, c="}, 4.0)]
    assert samples.one("nan") == 0


@pytest.mark.parametrize(
    "wrong",
    ["<html>", 'a{b="c} 1', "a{b=c} 1", "a one", "a 1\n" * (SAMPLES + 1)],
    ids=["html", "open", "bare", "word", "many"],
)
def test_metrics_that_are_none_are_refused(wrong: str) -> None:
    with pytest.raises(WrongAnswer, match="/metrics"):
        read_samples(wrong)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{", b"null", b'{"state": 1, "run": "x"}', b"[" * 100_000, b'{"gateways": []}', b'{"state": "\xed"}'],
    ids=["nothing", "list", "open", "null", "number", "deep", "other", "no-utf-8"],
)  # fmt: skip
def test_health_that_is_none_is_refused(body: bytes) -> None:
    with pytest.raises(WrongAnswer):
        read_health(body)


def test_fields_of_another_type_are_unknown() -> None:
    odd = {**ERRORS[0], "count": "many", "user": ["x"], "at_us": True, "node": "a" * 10_000, "text": "\x1b[31m\u202e"}
    _, [row] = read_page(page("errors", [odd, 7, None]), "errors")  # type: ignore[list-item]
    assert (row["count"], row["user"], row["at_us"]) == (None, None, None)
    assert len(row["node"]) == TEXT
    assert row["text"] == "\\x1b[31m\\u202e"
    answer = read_health(
        json.dumps({"state": "ready", "run": "r", "problems": 3, "tables": [], "warnings": [4]}).encode()
    )
    assert (answer["problems"], answer["digest"], answer["warnings"]) == ([], "", [""])


def test_more_rows_than_asked_for_are_refused() -> None:
    with pytest.raises(WrongAnswer, match=f"at most {ROWS} rows"):
        read_page(page("errors", [ERRORS[0]] * (ROWS + 1)), "errors")
    with pytest.raises(WrongAnswer, match="no such ID"):
        read_page(json.dumps({"gateways": [{"problem": "no such ID"}]}).encode(), "links")


def test_text_is_shown_as_it_is_or_escaped() -> None:
    assert text("Grüße") == "Grüße" and text(None) is None and text("a\nb") == "a\\nb"


def test_a_counter_becomes_minutes() -> None:
    rises = Rises()
    rises.take("r", NOW_US, {KEY: 10}, began_us=NOW_US - 10 * 3600 * SECOND_US)
    assert rises.counts(NOW_US, MINUTES)[KEY] == 0  # it happened before anyone looked
    for at in range(1, 4):
        rises.take("r", NOW_US + at * 20 * SECOND_US, {KEY: 10 + at})
    now_us = NOW_US + MINUTE_US
    assert rises.counts(now_us, 2)[KEY] == 3
    assert sum(rises.series(now_us, 5, lambda key: key == KEY)) == 3
    assert rises.counts(now_us, 2, before=2)[KEY] == 0
    assert rises.totals[KEY] == 13


def test_a_rise_between_two_looks_is_spread_over_the_time() -> None:
    rises = Rises()
    rises.take("r", NOW_US, {KEY: 0}, began_us=1)
    later_us = NOW_US + 9 * MINUTE_US
    rises.take("r", later_us, {KEY: 105})
    series = rises.series(later_us, 10, lambda key: True)
    assert sum(series) == 105 and max(series) - min(series) == 1
    assert rises.watched(later_us, 10) == [False] * 10
    rises.take("r", later_us + 2 * SECOND_US, {KEY: 106})
    assert rises.watched(later_us + 2 * SECOND_US, 10)[-1]


def test_another_run_counts_from_nothing() -> None:
    rises = Rises()
    rises.take("r", NOW_US, {KEY: 500}, began_us=1)
    rises.take("s", NOW_US + 2 * SECOND_US, {KEY: 4})
    rises.take("s", NOW_US + 4 * SECOND_US, {KEY: 3})  # a counter that falls is no negative number
    assert rises.counts(NOW_US + 4 * SECOND_US, 5)[KEY] == 4


def test_what_is_older_than_an_hour_is_forgotten() -> None:
    rises = Rises()
    rises.take("r", NOW_US, {KEY: 0}, began_us=1)
    for minute in range(200):
        rises.take("r", NOW_US + minute * MINUTE_US, {KEY: minute})
    assert rises.counts(NOW_US + 199 * MINUTE_US, 10_000)[KEY] == MINUTES
    assert rises.last_us(lambda key: key == KEY) == (NOW_US // MINUTE_US + 200) * MINUTE_US


def test_a_run_of_this_hour_is_known_from_its_beginning() -> None:
    """Kept refusals say when; what no entry stands for is spread over the run."""
    rises = gateway().rises
    full = ("errors", "amqp:resource-limit-exceeded", "capacity-reached", "transient",
            "published.capacity-reached-rejected", "small")  # fmt: skip
    counts = rises.counts(NOW_US, 60)
    assert counts[full] == 3 and counts["deliveries", "in", "small", "accepted"] == 2
    assert counts["errors", "amqp:not-found", "", "fatal", "attach.refuse-an-unknown-node", ""] == 1
    at = rises.series(NOW_US, 60, lambda key: key == full)
    assert [index for index, count in enumerate(at) if count] == [57]  # 100 s ago
    assert rises.known_us == NOW_US - 600 * SECOND_US


def test_a_label_may_take_many_values_and_few_are_followed() -> None:
    many = "".join(f'realmgate_peer_faults_total{{fault="f{at}"}} 1\n' for at in range(KEYS + 100))
    assert len(gateway(metrics=many).rises.totals) == KEYS


def test_entries_that_happen_again_are_the_same_ones() -> None:
    made = gateway()
    again = {**ERRORS[2], "at_us": NOW_US, "count": 9}
    rows = read_page(page("errors", [again, error(4, "fault", 0, fault="idle")]), "errors")[1]
    answer = read_health(json.dumps(health()).encode())
    made.answered(NOW_US, answer, read_samples(METRICS), rows, 0.02)
    assert [row["count"] for row in made.errors] == [1, 3, 9, 1]
    assert made.errors_since_us == NOW_US


def test_what_changes_at_a_gateway_is_noted() -> None:
    made = gateway()
    made.failed(NOW_US, "no answer")
    made.failed(NOW_US + SECOND_US, "no answer yet")
    assert (made.state, made.answers, made.failed_us, made.problem) == ("unknown", False, NOW_US, "no answer yet")
    other = json.dumps(health(run="other", tables={"digest": "0" * 32, "profile": "extended"}, state="degraded"))
    made.answered(NOW_US + 2 * SECOND_US, read_health(other.encode()), read_samples(METRICS), [], 0.02)
    assert [happening.letter for happening in made.happened] == ["G", "A", "S", "T", "P"]
    assert DIGEST[:8] in [*made.happened][3].words
    assert not made.errors, "those of another run"
    assert isinstance(made, Gateway) and made.serves
