"""The admin pages by themselves: what a peer may send, how many names there may be, in what parts text is written."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric

from gateway.admin import http, metrics
from gateway.admin.exposition import STEP_SAMPLES, Family, histogram, written
from gateway.admin.http import PLAIN, Request, Response
from gateway.config.limits import (
    ADMIN_REQUEST_BYTES,
    METRIC_DURABLES,
    METRIC_ERRORS,
    METRIC_MORE_DURABLES,
    METRIC_MORE_NODES,
    METRIC_NODES,
    METRIC_RULES,
)
from gateway.evidence.counters import OTHER, TEMPORARY, Error, OutcomeCounters
from gateway.evidence.outcome_key import LinkIdentity, OutcomeKey
from mappings import Decision
from native_backend.events.message_counts import MessageCounts
from native_backend.metrics import DurableMetrics, NodeFigures, RealmMetrics
from native_backend.state.durations import BOUNDS_S, Durations
from native_backend.state.intervals import STEP_BLOCKS, Intervals
from tests.gateway.admin.http.admin_site import GET, AdminSite, hello
from tests.kit.patience import HANG_S, until
from tests.kit.processes.admin_pages import Watch


async def _large(_: Request) -> Response:
    return Response(HTTPStatus.OK, PLAIN, bytes(50_000_000))


async def _broken(_: Request) -> Response:
    raise AssertionError("we are wrong")


@pytest.fixture
def site() -> Iterator[AdminSite]:
    site = AdminSite({"/hello": hello, "/large": _large, "/broken": _broken, "/livez": hello})
    yield site
    site.close()


@pytest.fixture
def watch(site: AdminSite) -> Watch:
    return site.watch


@pytest.mark.parametrize(
    ("chunks", "status", "end"),
    [
        ([GET % b"/hello"], b"200 OK", b"\r\n\r\nhello\n"),
        ([GET % b"/hello?a=b"], b"200 OK", b"\r\n\r\nhello\n"),
        ([b"GET /hello HT", b"TP/1.0\r\n", b"\r\n"], b"200 OK", b"\r\n\r\nhello\n"),
        ([b"HEAD /hello HTTP/1.1\r\n\r\n"], b"200 OK", b"\r\n\r\n"),
        ([GET % b"/hello", GET % b"/hello"], b"200 OK", b"\r\n\r\nhello\n"),
        ([GET % b"/"], b"404 Not Found", b"404 Not Found: there are: /hello /large /broken /livez\n"),
        ([GET % b"/hello/"], b"404 Not Found", b"/livez\n"),
        ([GET % b"/../hello"], b"404 Not Found", b"/livez\n"),
        ([GET % b"/\xff\x00"], b"404 Not Found", b"/livez\n"),
        ([b"POST /hello HTTP/1.1\r\nContent-Length: 9\r\n\r\n123456789"], b"405 Method Not Allowed", b"Allowed\n"),
        ([b"\r\n\r\n"], b"400 Bad Request", b"Request\n"),
        ([b"AMQP\x00\x01\x00\x00\r\n\r\n"], b"400 Bad Request", b"Request\n"),
        ([b"GET /hello SMTP/1.1\r\n\r\n"], b"400 Bad Request", b"Request\n"),
        ([b"GET /hello HTTP/1.1\r\nX: " + b"x" * ADMIN_REQUEST_BYTES + b"\r\n\r\n"], b"431 ", b"Large\n"),
        ([b"x" * 1_000_000], b"431 ", b"Large\n"),
        ([GET % b"/broken"], b"500 Internal Server Error", b"Error\n"),
    ],
)
def test_what_a_peer_says_is_answered(watch: Watch, chunks: list[bytes], status: bytes, end: bytes) -> None:
    answer = watch.say(*chunks, half_close=True)
    assert answer.startswith(b"HTTP/1.1 " + status), answer
    assert answer.endswith(end), answer
    assert watch.ask("/hello")[0] == 200, "and the next one is answered, too"


def test_half_a_request_is_not_answered(watch: Watch) -> None:
    assert watch.say(b"GET /hello HTTP/1.1\r\n", half_close=True) == b""


def test_who_takes_too_long_is_closed(monkeypatch: pytest.MonkeyPatch, site: AdminSite, watch: Watch) -> None:
    with monkeypatch.context() as hasty:
        hasty.setattr(http, "ADMIN_HEAD_TIMEOUT_S", 0.2)
        hasty.setattr(http, "ADMIN_TIMEOUT_S", 0.2)
        assert watch.say(b"GET /hello") in (b"", b"(reset)"), "it said too little"
        _does_not_read(site)
    assert watch.ask("/hello")[0] == 200


def _does_not_read(site: AdminSite) -> None:
    host, _, port = site.watch.url.removeprefix("http://").rpartition(":")
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect((host, int(port)))
        slow.sendall(GET % b"/large")
        until(lambda: not site.is_idle(), "the request to begin")
        until(site.is_idle, "the server to give it up")
        got = 0
        slow.settimeout(HANG_S)
        try:
            while data := slow.recv(1_000_000):
                got += len(data)
        except ConnectionResetError:
            pass
        assert got < 50_000_000, "it did not read"


# -- names


def _outcome_key(node: str, native: str | None = None, answer: str | None = None, **more: Any) -> OutcomeKey:
    rule = Decision("published", "refused", 0, {})
    link = LinkIdentity(1, more.pop("direction", "publish"), "link", "container", node, more.pop("store", 17))
    reported: dict[str, Any] = {"outcome": "rejected", "condition": None, "klass": "transient"}
    return OutcomeKey(
        link, rule, None, "publish", answer=answer, native=native, presettled=False, **_WORDS | reported | more
    )


_WORDS: dict[str, Any] = {"cause": "transfer"}


def test_names_beyond_the_bound_are_counted_as_others() -> None:
    counters = OutcomeCounters()
    for number in range(METRIC_NODES + 50):
        counters.add(_outcome_key(f"node-{number}"), 2)
    counters.add(_outcome_key("node-3"), 5)
    assert len(counters.deliveries) == METRIC_NODES + 1
    assert counters.deliveries["in", OTHER, "rejected"] == 100
    assert counters.deliveries["in", "node-3", "rejected"] == 7


def test_names_that_peers_make_up_take_no_place_of_a_nodes() -> None:
    counters = OutcomeCounters()
    for number in range(METRIC_NODES + 50):
        counters.add(_outcome_key(f"nowhere-{number}", store=0), 1)
        counters.add(_outcome_key(f"temporary:c.l.{number}", outcome="accepted", klass=None, answer="stored"), 1)
    counters.add(_outcome_key("orders"), 3)
    assert counters.deliveries == {
        ("in", "", "rejected"): METRIC_NODES + 50,
        ("in", TEMPORARY, "accepted"): METRIC_NODES + 50,
        ("in", "orders", "rejected"): 3,
    }


def test_a_code_is_one_word_and_there_are_so_many() -> None:
    counters = OutcomeCounters()
    counters.add(_outcome_key("q", "q is full", "capacity-reached", condition="amqp:resource-limit-exceeded"), 3)
    counters.add(_outcome_key("q", "MSG_SIZE_TOO_LARGE", "too-large", condition="amqp:link:message-size-exceeded"), 1)
    rule = "published.refused"
    assert counters.errors == {
        ("amqp:resource-limit-exceeded", "capacity-reached", "transient", rule, "q"): 3,
        ("amqp:link:message-size-exceeded", "MSG_SIZE_TOO_LARGE", "transient", rule, "q"): 1,
    }
    for number in range(METRIC_ERRORS * 2):
        counters.add(_outcome_key("q", f"E{number}", "unexpected", condition="amqp:internal-error", klass="fatal"), 1)
    assert len(counters.errors) == METRIC_ERRORS + 1
    assert counters.errors[Error("amqp:internal-error", OTHER, "fatal", rule, OTHER)] == METRIC_ERRORS + 2


def test_rules_beyond_the_bound_are_counted_as_others() -> None:
    counters = OutcomeCounters()
    first = _outcome_key("q")
    for number in range(METRIC_RULES + 50):  # tables that were loaded again and again
        counters.add(replace(first, rule=replace(first.rule, rule=f"rule-{number}")), 2)
    counters.add(replace(first, answer_rule=replace(first.rule, rule="rule-3")), 5)
    assert len(counters.rules) == METRIC_RULES + 1
    assert counters.rules["published", "rule-3"] == 7
    assert counters.rules[OTHER, OTHER] == 50 * 2 + 5


@pytest.mark.parametrize(
    ("counts", "fields"),
    [
        (False, {"outcome": "accepted", "answer": "stored", "klass": None}),
        (False, {"outcome": "none", "answer": "stored", "klass": None}),
        (False, {"outcome": "released", "answer": "rolled-back", "klass": None}),
        (True, {"outcome": "released", "answer": "unavailable", "native": "SQLITE_BUSY"}),
        (True, {"outcome": "none", "answer": "unavailable"}),
        (True, {"outcome": "none", "answer": "indeterminate", "klass": None}),
        (True, {"outcome": "rejected", "condition": "amqp:precondition-failed"}),
        (True, {"outcome": "rejected", "klass": None}),
        (False, {"direction": "subscribe", "outcome": "released", "stated": "released", "klass": None}),
        (False, {"direction": "subscribe", "outcome": "modified", "stated": "modified-failed", "klass": None}),
        (True, {"direction": "subscribe", "outcome": "released", "stated": "accepted", "klass": None}),
        (True, {"direction": "subscribe", "outcome": "none", "stated": "accepted", "answer": "indeterminate"}),
        (
            False,
            {"direction": "subscribe", "outcome": "released", "stated": "modified", "klass": None, "cause": "lost"},
        ),
        (False, {"direction": "subscribe", "outcome": "none", "stated": "sent-settled", "klass": None}),
    ],
)
def test_what_differs_from_what_was_asked_for_is_an_error(counts: bool, fields: dict[str, Any]) -> None:
    counters = OutcomeCounters()
    if fields.get("direction") == "subscribe":
        fields = {"cause": "disposition", **fields}
    counters.add(_outcome_key("q", fields.pop("native", None), fields.pop("answer", None), **fields), 4)
    assert [*counters.errors.values()] == [4] * counts


def _durables(count: int) -> RealmMetrics:
    figures = [DurableMetrics(f"n{at}", "d", 0, 1, 10 + at, MessageCounts(6, 3, 2, 1), 4, 5, at) for at in range(count)]
    return cast(RealmMetrics, SimpleNamespace(durables=lambda: iter(figures), depths=SimpleNamespace(counting=0)))


def test_durables_beyond_the_bound_are_one() -> None:
    """Each has a hole, so some more have their names."""
    named = METRIC_DURABLES + METRIC_MORE_DURABLES
    families = [family for family in metrics.of_durables(_durables(named + 7)) if isinstance(family, Family)]
    by_name = {family.name: dict(family.samples) for family in families}
    del by_name["realmgate_stores_counting"]
    assert all(len(samples) == named + 1 for samples in by_name.values())
    others = {
        name.removeprefix("realmgate_durable_"): samples[OTHER, OTHER, OTHER] for name, samples in by_name.items()
    }
    assert others == {
        "consumers": 7,
        "low_eid": 10 + named,
        "stored_events": 42,
        "unsettled_events": 14,
        "waiting_events": 21,
        "delayed_events": 7,
        "hole_events": 28,
        "settled_ranges": 35,
        "oldest_message_age_seconds": named + 6,
    }


@pytest.mark.parametrize(
    ("changed", "is_named"),
    [
        ({"counts": MessageCounts(3, 3, 0, 0)}, True),
        ({"counts": MessageCounts(3, 3, 0, 0), "oldest_s": 59.0}, False),
        ({"counts": MessageCounts(3, 3, 0, 0), "links": 0}, False),  # it has no consumer
        ({"counts": MessageCounts(3, 0, 3, 0)}, False),
        ({"counts": MessageCounts(3, 0, 3, 0), "hole": 1}, True),
        ({"counts": None, "oldest_s": None, "hole": 1}, False),
    ],
)
def test_beyond_the_bound_a_durable_with_something_to_look_at_has_its_name(
    changed: dict[str, Any], is_named: bool
) -> None:
    """Behind many without."""
    fine = DurableMetrics("n", "d", 0, 1, 10, MessageCounts(0, 0, 0, 0), 0, 0)
    figures = [replace(fine, node=f"n{at:04}") for at in range(METRIC_DURABLES + 3)]
    figures.append(replace(fine, **{"node": "z", "oldest_s": 60.0, **changed}))
    figures.append(replace(fine, node="z", partition=1))
    realm = SimpleNamespace(durables=lambda: iter(figures), depths=SimpleNamespace(counting=0))
    [consumers] = [
        family
        for family in metrics.of_durables(cast(RealmMetrics, realm))
        if isinstance(family, Family) and family.name == "realmgate_durable_consumers"
    ]
    assert {("z", "d", "0") in dict(consumers.samples), ("z", "d", "1") in dict(consumers.samples)} == {is_named}


def test_what_is_being_counted_has_no_numbers() -> None:
    known, unknown = (DurableMetrics(f"n{at}", "d", 0, 1, 10, None, 4, 5) for at in range(2))
    known = replace(known, counts=MessageCounts(6, 3, 2, 1))
    figures = SimpleNamespace(durables=lambda: iter([known, unknown]), depths=SimpleNamespace(counting=3))
    by_name = {
        family.name: dict(family.samples)
        for family in metrics.of_durables(cast(RealmMetrics, figures))
        if isinstance(family, Family)
    }
    for name in ("stored", "unsettled", "waiting", "delayed"):
        assert [*by_name[f"realmgate_durable_{name}_events"]] == [("n0", "d", "0")]
    assert len(by_name["realmgate_durable_low_eid"]) == 2
    assert [*by_name["realmgate_stores_counting"].values()] == [3]
    many = [replace(known, counts=known.counts if at else None) for at in range(-METRIC_DURABLES, 2)]
    figures.durables = lambda: iter(many)
    [stored] = [
        family
        for family in metrics.of_durables(cast(RealmMetrics, figures))
        if isinstance(family, Family) and family.name == "realmgate_durable_stored_events"
    ]
    assert (OTHER, OTHER, OTHER) not in dict(stored.samples), "of one of them it is not known"


def _nodes(*stores: NodeFigures) -> dict[str, dict[tuple[str, ...], float]]:
    figures = cast(RealmMetrics, SimpleNamespace(nodes=lambda: iter(stores)))
    return {family.name: dict(family.samples) for family in metrics.of_nodes(figures) if isinstance(family, Family)}


def test_nodes_beyond_the_bound_are_one_and_so_are_temporary_ones() -> None:
    plain = NodeFigures("n", 0, 5, None, 7, 0, temporary=False)
    every = [replace(plain, node=f"n{at}") for at in range(METRIC_NODES + 3)]
    transient = [replace(plain, node=f"t{at}", stored=2, temporary=True) for at in range(4)]
    shown = _nodes(*every, *transient)
    assert len(shown["realmgate_node_events"]) == METRIC_NODES + 2
    assert shown["realmgate_node_events"][OTHER, OTHER] == 15
    assert shown["realmgate_node_events"][TEMPORARY, OTHER] == 8
    assert shown["realmgate_node_events_limit"][OTHER, OTHER] == 21
    assert shown["realmgate_node_bytes"] == {}
    ages = _nodes(*(replace(figures, oldest_s=at) for at, figures in enumerate(every)))
    assert ages["realmgate_node_oldest_message_age_seconds"][OTHER, OTHER] == METRIC_NODES + 2
    assert shown["realmgate_node_oldest_message_age_seconds"] == {}, "it is not known"
    uncounted = _nodes(*every, replace(plain, node="last", stored=None))
    assert (OTHER, OTHER) not in uncounted["realmgate_node_events"], "of one of them it is not known"
    assert uncounted["realmgate_node_events_limit"][OTHER, OTHER] == 28
    assert _nodes(replace(plain, stored=None))["realmgate_node_events"] == {}


def test_beyond_the_bound_a_node_that_is_nearly_full_has_its_name() -> None:
    plain = NodeFigures("n", 0, 5, None, 10, 0, temporary=False)
    every = [replace(plain, node=f"n{at}") for at in range(METRIC_NODES + 3)]
    fuller = [replace(plain, node=f"f{at}", stored=8) for at in range(METRIC_MORE_NODES + 9)]
    octets = replace(plain, node="octets", stored=1, events_max=0, size_bytes=80, bytes_max=100)
    unlimited = replace(plain, node="unlimited", stored=1 << 40, events_max=0)
    other_store = replace(plain, node="f0", partition=1, stored=0)
    shown = _nodes(*every, octets, unlimited, *fuller, other_store)["realmgate_node_events"]
    assert ("octets", "0") in shown and ("f0", "0") in shown and ("unlimited", "0") not in shown
    assert ("f0", "1") in shown, "a number of one of its stores would be taken for the node's"
    assert len(shown) == METRIC_NODES + METRIC_MORE_NODES + 2
    assert shown[OTHER, OTHER] > 1 << 40


# -- text


def test_a_family_in_parts_is_the_family() -> None:
    count = 3 * STEP_SAMPLES + 1
    samples = [((f'na"me\n{at}', "\\x%s{}"), at * 1e5 + 0.5) for at in range(count)]
    whole = Metric("many", "So\nmany.", "counter")
    for (name, more), number in samples:
        whole.add_sample("many_total", {"name": name, "more": more}, number)
    parts = [*written([Family("many", "counter", "So\nmany.", ("name", "more"), samples)])]
    assert len(parts) == 4
    assert b"".join(parts) == generate_latest(cast(Any, SimpleNamespace(collect=lambda: [whole])))


def test_a_histogram_counts_upwards() -> None:
    durations = Durations()
    for seconds in (0.0, 0.001, 0.0011, 0.3, 99.0):
        durations.add(seconds)
    lines = b"".join(written([histogram("took_seconds", "It took.", durations)])).decode().splitlines()
    buckets = [float(line.split()[-1]) for line in lines if "_bucket" in line]
    assert buckets == [2, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 5]
    assert len(buckets) == len(BOUNDS_S) + 1
    assert lines[-2:] == ["took_seconds_count 5.0", f"took_seconds_sum {sum((0.0, 0.001, 0.0011, 0.3, 99.0))}"]


@pytest.mark.parametrize("spoil", [lambda _: None, lambda ranges: ranges.remove_below(400_000)])
def test_a_million_ranges_are_counted_in_steps(spoil: Callable[[Intervals], object]) -> None:
    ranges = Intervals((2 * at, 2 * at) for at in range(200_000))
    steps = ranges.counting()
    assert next(steps) is None
    spoil(ranges)
    *pauses, count = steps
    assert count is not None
    assert len(pauses) <= 200_000 // 512 // STEP_BLOCKS + 1
    if ranges:
        assert count == ranges.count() == 200_000
