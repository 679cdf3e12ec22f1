"""The dashboard of deploy/grafana: each query names what a real gateway shows in /metrics after traffic and incidents,
and shows at least one series of it. Evaluated as the alerts are, by `promql`, with the labels that Prometheus adds; in
the long tier a real Prometheus scrapes the two gateways.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from native_backend.log.open import open_embedded
from tests.gateway.admin.promql import Node, Scrape, at, parse
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, make_gateway
from tests.kit.processes.prometheus import start_prometheus
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE
from tests.kit.wire.transacting import Transacting

DASHBOARD: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "deploy" / "grafana" / "realmgate.json").read_text()
)
ADDED = {"job", "instance"}  # by Prometheus, to every series
STANDS_FOR = {"$job": "realmgate", "$__rate_interval": "10m", "$__range": "1h"}
STEP_S = 180.0
HANDED = (["realmgate_evidence_append_seconds_count"], ["realmgate_evidence_failed_total"])  # stored, and then not
COUNTED = {"realmgate_durable_waiting_events", "realmgate_node_events"}  # some time after the store is there
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = [(panel["title"], target["expr"], target["legendFormat"]) for panel in PANELS for target in panel["targets"]]


def expanded(expression: str) -> str:
    """With its variables replaced, as Grafana does."""
    for name, value in STANDS_FOR.items():
        expression = expression.replace(name, value)
    return expression


def labels_of(scrapes: Sequence[Scrape]) -> dict[str, set[str]]:
    """By metric, the names of the labels that were seen."""
    names: dict[str, set[str]] = {}
    for _, samples in scrapes:
        for name, labels in samples:
            names.setdefault(name, set(ADDED)).update(label for label, _ in labels)
    return names


def problems_of(expression: str, legend: str, scrapes: Sequence[Scrape]) -> list[str]:
    """What a query, or its legend, names that no gateway shows; and that it shows nothing."""
    node, shown = parse(expanded(expression)), labels_of(scrapes)
    problems = list(_unknown(node, shown))
    left = _labels_left(node, shown)
    problems += [f"the legend names {label}" for label in re.findall(r"\{\{(\w+)\}\}", legend) if label not in left]
    return problems or ([] if at(node, scrapes) else [f"{expression} shows nothing"])


def _unknown(node: Node, shown: dict[str, set[str]]) -> Iterator[str]:
    if node.what == "series" and node.name not in shown:
        yield f"there is no {node.name}"
        return
    named = set(node.labels) if node.what == "series" else set(node.by)
    if node.names() <= shown.keys():
        known = set().union(*(shown[name] for name in node.names()))
        yield from (f"{', '.join(sorted(node.names()))} has no {label}" for label in sorted(named - known))
    for inner in node.inner:
        yield from _unknown(inner, shown)


def _labels_left(node: Node, shown: dict[str, set[str]]) -> set[str]:
    if node.what == "series":
        return shown.get(node.name, set())
    if node.what == "by":
        return set(node.by)
    return set().union(*(_labels_left(inner, shown) for inner in node.inner if inner.what != "number"))


def started(directory: Path, realm: dict[str, Any]) -> GatewayProcess:
    gateway = make_gateway(
        directory,
        realm,
        admin={"listen": "http://127.0.0.1:0"},
        nodes={"create_on_attach": ["orders"]},
        limits={"message_size_bytes": 10_000},
    )
    gateway.launch()
    return gateway


def pass_messages(port: int) -> None:
    """All that goes well, and all that a peer can do wrong."""
    with Peer(port) as peer:
        peer.stored("orders", *[MESSAGE] * 6)
        peer.consumer("orders", credit=6)
        *seen, last = [frame.field(1) for frame in peer.receive(6)]
        peer.settle([last], frames.state("rejected"), settled=False)
        peer.outcomes(1)
        peer.settle(seen, frames.state("accepted"))
        peer.stored("bounded", MESSAGE)
    with Transacting(port) as transacting:
        transacting.publisher("orders")
        transaction = transacting.begun()
        transacting.promised(*transacting.post(transaction, MESSAGE))
        assert transacting.discharge(transaction) == "accepted"
    with Peer(port) as peer:
        peer.send(frames.attach_receiver("no-such-queue"))
        assert peer.refused() == "amqp:not-found"
    with Peer(port) as peer:
        peer.publisher("orders")
        peer.publish(frames.message(bytes(20_000)))
        assert peer.detached() == "amqp:link:message-size-exceeded"


def lose_evidence(directory: Path) -> None:
    """From now on no outcome record is stored: a problem, and an alarm."""
    log = open_embedded(directory / "realm")
    log.control.delete_topics(["um.outcomes"])
    log.close()


def total(watch: Watch, *names: str) -> float:
    return sum(number for (name, _), number in watch.scrape().items() if name in names)


@contextmanager
def gateway_and_standby(directory: Path) -> Iterator[tuple[GatewayProcess, dict[str, Watch]]]:
    """By instance, where their pages are."""
    realm = embedded_realm(directory)
    serving = started(directory / "serving", realm)
    serving.await_ready()
    standby = started(directory / "standby", realm)
    try:
        standby.await_log("this gateway listens when that one ends")
        serving.command("node", "create", "dead")
        serving.command("node", "create", "orders", "--dead-letter", "dead")
        serving.command("node", "create", "bounded", "--capacity-events", "10", "--capacity-bytes", "1MiB")
        yield serving, {"alpha:9464": Watch.of(serving), "beta:9464": Watch.of(standby)}
    finally:
        standby.kill()
        serving.kill()


def rounds(directory: Path, serving: GatewayProcess, watch: Watch) -> Iterator[int]:
    """Traffic and incidents, four times; after each it is shown."""
    for number in range(4):
        if number == 2:
            lose_evidence(directory)
        before = total(watch, *HANDED[number // 2])
        pass_messages(serving.port)
        watch.until(lambda before=before, number=number: total(watch, *HANDED[number // 2]) > before)  # type: ignore[misc]
        if number >= 2:
            watch.until(lambda: total(watch, "realmgate_alarms_total", "realmgate_problem") >= 2)
        watch.until(lambda: {name for name, _ in watch.scrape()} >= COUNTED)
        yield number


@pytest.fixture(scope="module")
def scrapes(tmp_path_factory: pytest.TempPathFactory) -> list[Scrape]:
    """Of a gateway and its standby, four times: traffic and incidents lie between."""
    directory = tmp_path_factory.mktemp("grafana")
    with gateway_and_standby(directory) as (serving, watches):
        return [(number * STEP_S, scraped(watches)) for number in rounds(directory, serving, watches["alpha:9464"])]


def scraped(watches: dict[str, Watch]) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Of all gateways, as Prometheus keeps them."""
    return {
        (name, labels | {("instance", instance)}): number
        for instance, watch in watches.items()
        for (name, labels), number in watch.scrape().items()
    }


@pytest.mark.parametrize(("title", "expression", "legend"), QUERIES)
def test_a_query_names_what_a_gateway_shows_and_shows_it(
    scrapes: list[Scrape], title: str, expression: str, legend: str
) -> None:
    assert problems_of(expression, legend, scrapes) == [], title


@pytest.mark.parametrize(
    ("expression", "legend", "problem"),
    [
        ("sum by (job) (realmgate_redy)", "", "there is no realmgate_redy"),
        ('sum by (job) (realmgate_ready{job="$job", nod="x"})', "", "realmgate_ready has no nod"),
        ("sum by (class, rle) (realmgate_errors_total)", "", "realmgate_errors_total has no rle"),
        ("sum by (class) (realmgate_errors_total)", "{{rule}}", "the legend names rule"),
        ("realmgate_ready > 7", "", "realmgate_ready > 7 shows nothing"),
    ],
)
def test_what_is_misspelt_is_found(scrapes: list[Scrape], expression: str, legend: str, problem: str) -> None:
    assert problems_of(expression, legend, scrapes) == [problem]


def test_a_real_prometheus_shows_something_for_every_query(tmp_path: Path) -> None:
    prometheus = start_prometheus(tmp_path / "prometheus")
    try:
        with gateway_and_standby(tmp_path) as (serving, watches):
            prometheus.scrape(STANDS_FOR["$job"], {instance: watch.url for instance, watch in watches.items()})
            for _ in rounds(tmp_path, serving, watches["alpha:9464"]):
                prometheus.await_look()
            shown = {expression: prometheus.query(expanded(expression)) for _, expression, _ in QUERIES}
            assert [expression for expression, series in shown.items() if not series] == []
            assert [expression for expression in shown if prometheus.query(of_another_job(expression))] == []
            assert [sample["metric"]["job"] for sample in prometheus.query("realmgate_ready")] == ["realmgate"] * 2
    finally:
        prometheus.stop()


def of_another_job(expression: str) -> str:
    """The same question of a job that there is not: it shows nothing."""
    return expanded(expression.replace("$job", "no-such-job"))


def test_every_query_is_of_the_chosen_job() -> None:
    for title, expression, _ in QUERIES:
        selected = re.findall(r"\b(?:realmgate|process)_\w+(\{[^}]*\})?", expression)
        assert selected and all('job="$job"' in braces for braces in selected), title


def test_the_panels_have_titles_of_their_own_and_lie_beside_each_other() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert len({panel["title"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    cells = [cells_of(panel["gridPos"]) for panel in DASHBOARD["panels"]]
    assert all(x < 24 for area in cells for x, _ in area)
    assert not any(area & other for area, other in combinations(cells, 2))


def cells_of(grid: dict[str, int]) -> set[tuple[int, int]]:
    return {(grid["x"] + x, grid["y"] + y) for x in range(grid["w"]) for y in range(grid["h"])}


def test_the_data_source_is_chosen_by_a_variable() -> None:
    known = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert known == {"datasource", "job"}
    assert {panel["datasource"]["uid"] for panel in PANELS} == {"${datasource}"}
