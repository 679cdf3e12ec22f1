"""A real console over a real gateway: an incident is caused over AMQP, and found by text in HTML and in JSON."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import proton
import pytest

from console.limits import STREAMS
from tests.console.incidents import PANELS, incidents, start_troubled, write_report
from tests.console.scripted_admin import scripted_admin
from tests.kit.patience import until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.console import ConsoleProcess, start_console
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, realmgate, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import BAD, given_back
from tests.kit.wire.logins import PASSWORD, connect
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE

ADMIN = {"listen": "http://127.0.0.1:0"}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    gateway = start_troubled(tmp_path_factory.mktemp("console-gateway"))
    yield gateway
    assert gateway.stop() == 0, gateway.log()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("reports")
    write_report(directory / "monday")
    return directory


@pytest.fixture(scope="module")
def console(
    gateway: GatewayProcess, reports: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConsoleProcess]:
    url = Watch.of(gateway).url
    config = ("--config", str(gateway.config_path))
    console = start_console(tmp_path_factory.mktemp("console"), "--gateway", url, "--reports", str(reports), *config)
    yield console
    assert console.stop() == 0, console.log()
    assert "Traceback" not in console.log(), console.log()


def panel(console: ConsoleProcess, name: str) -> str:
    """What it says, without its tags."""
    match = re.search(rf'<section class="panel" data-key="panel {name}">(.*?)</section>', console.get("/")[2], re.S)
    assert match is not None, name
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", match[1])))


def shows(console: ConsoleProcess, name: str, wanted: tuple[str, ...]) -> bool:
    text = panel(console, name)
    return all(word in text for word in wanted)


def test_each_panel_shows_its_incident(gateway: GatewayProcess, console: ConsoleProcess) -> None:
    assert not [name for name in PANELS if name != "Reconciliation" and shows(console, name, PANELS[name])]
    with incidents(gateway):
        for name, wanted in PANELS.items():
            until(partial(shows, console, name, wanted), f"{wanted} in panel {name}")
        verdict = console.json("/overview.json")["verdict"]
        assert verdict["class"] == "fatal" and "problems are open" in verdict["sentence"]
        matrix = {row["condition"]: row["cells"] for row in console.json("/errors.json")["matrix"]["rows"]}
        cells = {cell["code"]: cell for cell in matrix["amqp:resource-limit-exceeded"]}
        assert (cells["capacity-reached"]["count"], cells["capacity-reached"]["class"]) == (3, "transient")


def test_a_misspelt_queue_is_found(gateway: GatewayProcess, console: ConsoleProcess) -> None:
    with Peer(gateway.port, container="shop-batch-1") as peer:
        peer.send(frames.attach_sender("ordres", 7, "to-ordres"))
        assert peer.refused() == "amqp:not-found"
    for path in ("/", "/errors", "/refusals?q=ordres", "/find?q=ordres"):
        page = console.until(path, "ordres", "shop-batch-1")
        assert "attach. refuse-an-unknown-node" in page or "attach.refuse-an-unknown-node" in page, page
    console.until("/", "ordres does not exist. The nearest name is orders.")
    console.until("/refusals?q=ordres", "realmgate node create ordres")
    [problem] = [entry for entry in console.json("/overview.json")["open"]["first"] if entry["kind"] == "node-unknown"]
    assert problem["who"] == "shop-batch-1, user anonymous, 127.0.0.1"
    assert problem["rule"] == "attach.refuse-an-unknown-node"
    shown = realmgate("problems", "--gateway", Watch.of(gateway).url)[1]
    assert all(problem[name] in shown for name in ("words", "more", "who", "rule", "remedy")), shown
    status, headers, body = console.get("/errors.csv?table=fatal&q=ordres")
    assert (status, headers["content-type"]) == (200, "text/csv; charset=utf-8") and "ordres" in body
    assert console.get("/errors.csv?table=none")[2].startswith("there is no table 'none'; there are: ")
    rows = console.json("/errors.json?q=ordres")["groups"][0]["rows"]
    assert [row["nodes"][0]["node"] for row in rows] == ["ordres"]
    assert "The ATTACH" in console.words(problem["link"]) or "attach.yaml" in console.words(problem["link"])


def history_has(watch: Watch, name: str) -> None:
    """The gateway has written it down."""
    until(lambda: name in watch.ask("/api/history?limit=500")[2].decode(), f"{name} in the history")


def written(watch: Watch, wanted: list[str]) -> int:
    """So many deliveries, of direction, node and outcome."""
    [answer] = json.loads(watch.ask("/api/history?limit=500")[2])["gateways"]
    return sum(count for row in answer["history"] for *key, count in row["deliveries"] if key == wanted)


def test_what_was_counted_earlier_is_shown(gateway: GatewayProcess, console: ConsoleProcess) -> None:
    """In HTML, in JSON, as CSV, and by the command line: the same numbers."""
    with Peer(gateway.port, container="shop-batch-2") as peer:
        peer.stored("orders", *[MESSAGE] * 7)
        peer.send(frames.attach_sender("ordres", 7, "to-ordres"))
        assert peer.refused() == "amqp:not-found"
    watch = Watch.of(gateway)
    counted = watch.metrics()["realmgate_deliveries_total", ("in", "orders", "accepted")]
    history_has(watch, "attach.refuse-an-unknown-node")
    until(lambda: written(watch, ["in", "orders", "accepted"]) == counted >= 7, "the messages in the history")
    assert 'href="/history"' in console.get("/")[2]
    page = console.words("/history?span=1h")
    assert "counted until" in page and "None is kept, or none was written." in page and "orders" in page
    document = console.json("/history.json?span=1h&node=orders")
    [value] = [fact["value"] for fact in document["facts"] if fact["name"] == "In"]
    shown = realmgate(*document["command"].split()[1:], "--gateway", watch.url)[1]
    assert value >= counted and re.search(rf"^TOTAL +{value} ", shown, re.MULTILINE), shown
    assert None in document["charts"][0]["series"], "what was before the gateway is not known"
    status, headers, body = console.get("/history.csv?table=errors&span=1h")
    assert (status, headers["content-type"]) == (200, "text/csv; charset=utf-8") and "unknown-node" in body
    assert console.get("/history.csv?span=1h")[2].startswith("at,at_us,link,record,in,refused,out,")


def test_a_full_node_is_found_with_the_way_to_its_messages(gateway: GatewayProcess, console: ConsoleProcess) -> None:
    with Peer(gateway.port, container="erp-export-1") as peer:
        peer.publisher("small")
        peer.outcomes(len(peer.publish(*[MESSAGE] * 5)))
        page = console.until("/errors", "amqp:resource-limit-exceeded", "erp-export-1", "realmgate trace")
        assert "published.capacity-reached-rejected" in page.replace("published. ", "published.")
        transient = console.json("/errors.json")["groups"][1]["rows"]
        [row] = [row for row in transient if row["code"] == "capacity-reached"]
        assert row["count"] >= 3 and row["examples"][0]["trace"].startswith("realmgate trace ")
        [node] = console.json("/nodes.json?node=small")["rows"]
        assert (node["events"], node["events_limit"], node["used"]) == (2, 2, 1.0)
        console.until("/", "small is full.")
        console.until("/links", "erp-export-1", "small")
        console.until("/connections", "erp-export-1")
        console.until("/rules?q=capacity-reached-rejected&open=published", "capacity-reached-rejected")
    trace = row["examples"][0]["trace"].split(" ")[1:]
    assert "capacity-reached-rejected" in gateway.command(*trace)


def test_a_wrong_password_is_found_without_the_password(gateway: GatewayProcess, console: ConsoleProcess) -> None:
    with pytest.raises(proton.ConnectionException):
        connect(gateway, f"{PASSWORD}?", "PLAIN", user="ann")
    page = console.until("/", "User ann cannot log in")
    assert PASSWORD not in page and PASSWORD not in json.dumps(console.json("/refusals.json"))
    console.until("/refusals?kind=login", "failed-login", "ann")


def letters(console: ConsoleProcess, query: str) -> dict[str, Any]:
    """As soon as they could be read: on a busy machine the command may take longer than a page waits."""
    answers: list[dict[str, Any]] = [{}]

    def are_read() -> bool:
        answers[0] = console.json(f"/dead.json?{query}")["letters"]
        return not answers[0]["problem"]

    until(are_read, "the letters")
    return answers[0]


def test_a_dead_letter_is_found_with_who_gave_it_up_and_why(gateway: GatewayProcess, console: ConsoleProcess) -> None:
    given_back(gateway, "bills", BAD, frames.state("rejected"))
    page = console.until("/dead", "app:bad", "cannot parse order 4711")
    assert "Read " in page and " letters, from EID " in page and "realmgate queue peek dead" in page
    console.until("/", "Dead letters", "bills", "rejected")
    first, second = letters(console, "node=dead")["rows"][-2:]
    assert (first["cause"], first["node"], first["attempts"], first["sections"]["body"]) == (
        "rejected",
        "bills",
        1,
        "0",
    )
    assert second["condition"] == ""
    only = letters(console, "node=dead&where=amqp.dead_letter_condition+IS+NULL")
    eids = [row["eid"] for row in only["rows"]]
    assert second["eid"] in eids and first["eid"] not in eids
    gateway.command("acl", "grant", "user:ann", "peek", "--node", "dead")
    until(lambda: "may not peek" in console.words("/dead?node=dead&eid=1"), "the grant to count")
    gateway.command("acl", "revoke", "user:ann", "peek", "--node", "dead", "--open")


def test_there_are_no_actions_unless_they_are_switched_on(console: ConsoleProcess) -> None:
    assert console.get("/act?do=purge&node=dead")[0] == 404
    assert console.get("/act", {"Origin": console.url}, b"do=purge&node=dead&name=dead&why=x&token=y")[0] == 404
    assert "/act" not in console.get("/dead")[2] and "/act" not in console.get("/connections")[2]


def test_every_page_names_its_gateway_and_age(gateway: GatewayProcess, console: ConsoleProcess) -> None:
    name = Watch.of(gateway).url.removeprefix("http://")
    for path in ("/", "/errors", "/refusals", "/nodes", "/durables", "/links", "/connections", "/dead", "/rules",
                 "/history", "/reconciliation", "/gateways", "/find"):  # fmt: skip
        page = console.words(path)
        assert name in page and " ago" in page, path
        document = console.json("/overview.json" if path == "/" else f"{path}.json")
        [row] = document["gateways"]
        assert row["name"] == name and row["answers"] and row["age_s"] >= 0
        assert row["run"] == Watch.of(gateway).health()["run"]
        assert json.loads(console.get(path, {"Accept": "application/json"})[2])["page"] == document["page"]


def test_the_report_of_a_reconciliation_is_shown_without_its_script(console: ConsoleProcess) -> None:
    page = console.words("/reconciliation")
    assert "Not clean." in page and "4 \u00d7 lost write (P1)." in page
    assert console.json("/reconciliation.json")["last"]["classes"][0]["count"] == 4
    status, headers, body = console.get("/reconciliation/report/monday")
    assert status == 200 and "the report itself" in body
    assert "script-src" not in headers["content-security-policy"] and "sandbox" in headers["content-security-policy"]
    assert console.get("/reconciliation/report/..%2f..%2fetc")[0] == 404


def test_no_page_runs_what_is_not_its_own(console: ConsoleProcess) -> None:
    status, headers, body = console.get("/")
    assert status == 200 and "unsafe" not in headers["content-security-policy"]
    assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert (headers["x-content-type-options"], headers["cache-control"]) == ("nosniff", "no-store")
    assert " style=" not in body and "<script>" not in body and " onclick" not in body
    assert console.get("/static/console.js")[0] == 200 and console.get("/static/../app.py")[0] == 404


def test_another_name_for_this_machine_is_refused(console: ConsoleProcess) -> None:
    """A page of another site that points its own name here would read all of this."""
    assert console.get("/errors.json", {"Host": "evil.example"})[0] == 421
    assert console.get("/healthz", {"Host": "localhost"})[0] == 200
    assert console.get("/logout", {"Origin": "http://evil.example"}, b"")[0] == 403
    assert console.get(f"/errors?q={'x' * 3000}")[0] == 414
    assert console.get("/no-such-page")[0] == 404 and console.get("/errors", method="DELETE")[0] in (403, 405)


def streamed(console: ConsoleProcess, page: str, count: int) -> list[dict[str, Any]]:
    """The first events of a page that is open."""
    events: list[dict[str, Any]] = []
    with urllib.request.urlopen(f"{console.url}/stream?{urlencode({'page': page})}", timeout=60) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        while len(events) < count:
            line = stream.readline().decode()
            if line.startswith("data: "):
                events.append(json.loads(line.removeprefix("data: ")))
    return events


def test_an_open_page_gets_what_changed_of_its_content(console: ConsoleProcess) -> None:
    first, later = streamed(console, "/errors?window=5", 2)
    assert "<h1>Errors</h1>" in "".join(first["parts"].values()) and len(first["parts"]) == first["count"]
    assert first["at_us"] < later["at_us"] and later["count"] == first["count"]
    made = [part for part in later["parts"].values() if 'data-key="made"' in part]
    assert len(made) == 1, "the time at which it was made has changed"


def test_a_page_that_comes_back_makes_the_console_ask_again(tmp_path: Path) -> None:
    """It was in the background, and no page is made then: that its stream is open is all that the console learns."""
    with scripted_admin() as first, scripted_admin() as another:
        console = start_console(tmp_path, "--gateway", first.url, "--gateway", another.url)
        try:
            with urllib.request.urlopen(f"{console.url}/stream?page=%2F", timeout=60) as stream:
                stream.readline()
                until(lambda: first.asked and another.asked, "both gateways to be asked")
        finally:
            assert console.stop() == 0, console.log()


def test_there_is_no_stream_of_no_page(console: ConsoleProcess) -> None:
    assert console.get("/stream?page=%2Fno-such")[0] == 404


def test_so_many_pages_are_live_and_the_next_one_says_that_it_is_not(console: ConsoleProcess) -> None:
    streams = [urllib.request.urlopen(f"{console.url}/stream?page=%2Fdead", timeout=60) for _ in range(STREAMS)]
    try:
        for stream in streams:
            stream.readline()
        assert console.get("/stream?page=%2Fdead")[0] == 503
        assert "not live: reload" in console.words("/dead")
    finally:
        for stream in streams:
            stream.close()
    until(lambda: "not live" not in console.words("/dead"), "the streams to end")


def test_a_gateway_that_goes_is_shown_and_its_history_stays(tmp_path: Path) -> None:
    directory = tmp_path / "gateway"
    limits = {"history_interval_s": 1}
    gateway = start_gateway(directory, embedded_realm(directory), admin=ADMIN, nodes={}, limits=limits)
    console = start_console(tmp_path, "--gateway", Watch.of(gateway).url)
    try:
        with Peer(gateway.port, container="shop") as peer:
            peer.send(frames.attach_sender("oders", 7, "to-oders"))
            peer.refused()
        console.until("/errors", "oders")
        history_has(Watch.of(gateway), "attach.refuse-an-unknown-node")
        assert "unknown-node" in console.words("/history?span=1h")
        gateway.kill()
        assert "cannot be read: /api/history: Connection refused. Nothing is known" in console.words("/history?span=6h")
        assert "unknown-node" in console.words("/history?span=1h"), "what was read stays"
        page = console.until("/errors", "does not answer", "Connection refused")
        assert "last heard" in page and "oders" in page
        overview = console.json("/overview.json")
        assert overview["verdict"]["sentence"].startswith("No gateway answers.")
        assert overview["gateways"][0]["silent_since"] and overview["open"]["first"][0]["kind"] == "gateway-gone"
    finally:
        assert console.stop() == 0
        gateway.stop()


def test_a_console_that_begins_without_a_gateway_shows_the_history_in_the_realm(tmp_path: Path) -> None:
    directory = tmp_path / "gateway"
    gateway = start_gateway(
        directory, embedded_realm(directory), admin=ADMIN, nodes={}, limits={"history_interval_s": 1}
    )
    watch = Watch.of(gateway)
    with Peer(gateway.port) as peer:
        peer.send(frames.attach_sender("oders", 7, "to-oders"))
        peer.refused()
    history_has(watch, "attach.refuse-an-unknown-node")
    gateway.kill()
    console = start_console(tmp_path, "--gateway", watch.url, "--config", str(gateway.config_path))
    try:
        page = console.until("/history?span=1h", "unknown-node")
        assert "Read out of the realm itself, without a gateway" in page
        gaps = console.json("/history.json?span=1h")["gaps"]
        assert {gap["gateway"] for gap in gaps} == {"the realm itself"}
    finally:
        assert console.stop() == 0, console.log()


def test_a_gateway_that_is_hung_delays_no_page(tmp_path: Path) -> None:
    with scripted_admin(lambda _: None) as hung, scripted_admin() as other:
        console = start_console(tmp_path, "--gateway", hung.url, "--gateway", other.url)
        try:
            console.until("/", "no answer to /health within 5 s")
            gateways = {entry["url"]: entry for entry in console.json("/gateways.json")["gateways"]}
            assert (gateways[hung.url]["state"], gateways[other.url]["state"]) == ("unknown", "ready")
            rows = console.json(f"/errors.json?gateway={other.url.removeprefix('http://')}")["groups"][1]["rows"]
            assert [row["in_this_run"] for row in rows] == [3]
        finally:
            assert console.stop() == 0, console.log()


def test_what_peers_call_themselves_is_text(gateway: GatewayProcess, console: ConsoleProcess) -> None:
    name = "<img src=x onerror=alert(1)>"
    with Peer(gateway.port, container=name) as peer:
        peer.send(frames.attach_sender(name, 7, name))
        peer.refused()
    until(lambda: "onerror" in console.get("/refusals")[2], "the refusal")
    for path in ("/", "/errors", "/refusals", "/find?q=onerror"):
        assert "<img" not in console.get(path)[2], path


def test_it_ends_with_a_page_open(tmp_path: Path) -> None:
    with scripted_admin() as admin:
        console = start_console(tmp_path, "--gateway", admin.url)
        with urllib.request.urlopen(f"{console.url}/stream?page=%2F", timeout=60) as stream:
            stream.readline()
            assert console.stop() == 0, console.log()


BEFORE_IT_SERVES = """
import os, signal, sys, uvicorn
uvicorn.Server.run = lambda self, sockets: (signal.raise_signal(signal.SIGTERM), os._exit(9))
from console.__main__ import main
sys.exit(main())
"""


def test_a_signal_that_comes_before_it_serves_ends_it() -> None:
    """It was forgotten: systemd killed the console half a minute later."""
    words = ["--listen", "http://127.0.0.1:0", "--gateway", "http://127.0.0.1:1", "--keep-priority"]
    done = subprocess.run([sys.executable, "-c", BEFORE_IT_SERVES, *words], capture_output=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith(b"console at "), done
