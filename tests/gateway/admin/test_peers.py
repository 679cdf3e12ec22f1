"""What operators see of connections and links, each fact caused over a real socket; and a connection that is closed."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from proton import Message
from proton.utils import BlockingConnection

from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import DEADLINE_S, Watch
from tests.kit.processes.gateway import GatewayProcess, StartGateway, embedded_realm, realmgate, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.logins import PASSWORD, connect, write_users
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE

ADMIN = {"listen": "http://127.0.0.1:0"}
Row = dict[str, Any]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("peers")
    write_users(directory / "users.yaml", alice=["ops"], bob=[])
    security = {"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True}
    gateway = start_gateway(directory, embedded_realm(directory), security=security, admin=ADMIN)
    yield gateway
    assert gateway.stop() == 0, gateway.log()
    assert "Traceback" not in gateway.log_path.read_text(), gateway.log()


def rows(watch: Watch, what: str, **query: str) -> list[Row]:
    status, _, body = watch.ask(f"/api/{what}?{urllib.parse.urlencode(query)}")
    assert status == 200, body
    [answer] = json.loads(body)["gateways"]
    assert answer["run"] == watch.health()["run"]
    assert answer["state"] == "ready"
    assert abs(answer["at_us"] / 1e6 - time.time()) < DEADLINE_S
    entries: list[Row] = answer[what]
    return entries


def until(reached: Callable[[], Any], shown: Callable[[], object]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < end, shown()
        time.sleep(0.05)


def test_a_connection_is_shown_with_who_it_is_and_its_client(gateway: GatewayProcess) -> None:
    watch, before_us = Watch.of(gateway), time.time_ns() // 1000
    connection = connect(gateway, PASSWORD, "PLAIN", user="alice")
    properties = {"product": "shop", "version": "1.2", "platform": "test"}
    client = BlockingConnection(f"amqp://{gateway.address}", timeout=HANG_S, properties=properties)
    sender = connection.create_sender("seen")
    for _ in range(3):
        sender.send(Message(body="x"))
    until(lambda: rows(watch, "connections", user="alice")[0]["outcomes"]["publish"] == {"accepted": 3}, watch.health)
    [row] = rows(watch, "connections", user="alice")
    assert (row["address"], row["state"], row["links"], row["messages_received"]) == ("127.0.0.1", "open", 1, 3)
    assert row["container"]
    assert before_us <= row["since_us"] <= time.time_ns() // 1000
    named = [entry["client"] for entry in rows(watch, "connections")]
    assert properties in named
    shown = watch.command("connections")
    assert row["id"] in shown and "shop 1.2" in shown and watch.url in shown
    client.close()
    connection.close()
    until(lambda: not rows(watch, "connections", user="alice"), watch.health)


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_links_show_what_became_of_their_deliveries_and_what_is_unsettled(new_gateway: StartGateway, kind: str) -> None:
    gateway = new_gateway(kind, admin=ADMIN)
    watch = Watch.of(gateway)
    with Peer(gateway.port, container="worker") as peer:
        peer.publisher("held", handle=0)
        peer.outcomes(len(peer.publish(*[MESSAGE] * 5)))
        peer.consumer("held", credit=3)
        numbers = [seen.field(1) for seen in peer.receive(3)]
        peer.settle(numbers[1:2], frames.state("released"))
        peer.settle(numbers[2:], frames.state("accepted"))

        def consumer() -> Row:
            [row] = [link for link in rows(watch, "links", node="held") if link["direction"] == "subscribe"]
            return row

        until(lambda: consumer()["outcomes"] == {"accepted": 1, "released": 1}, consumer)
        until(lambda: (consumer()["oldest_unsettled_s"] or 0) >= 1, consumer)
        row = consumer()
        assert (row["unsettled"], row["credit"], row["kind"]) == (1, 0, "consumer")
        assert row["without_credit_s"] > 0
        assert row["without_credit_total_s"] >= row["without_credit_s"]
        peer.credit(100)
        until(lambda: consumer()["credit"] > 0, consumer)
        until(lambda: consumer()["without_credit_s"] == 0, consumer)
        assert consumer()["without_credit_total_s"] >= row["without_credit_s"]
        [publisher] = [link for link in rows(watch, "links") if link["direction"] == "publish"]
        assert (publisher["outcomes"], publisher["node"], publisher["kind"]) == ({"accepted": 5}, "held", "publisher")
        assert (publisher["unsettled"], publisher["oldest_unsettled_s"], publisher["without_credit_s"]) == (0, None, 0)
        assert publisher["credit"] > 0
        shown = watch.command("links", "--node", "held")
        assert "accepted 5" in shown and row["id"] in shown


def test_a_relay_counts_what_it_published_to_all_its_addresses(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    with Peer(gateway.port, container="relaying") as peer:
        peer.send(frames.attach_sender(None, 0, "relay"))
        peer.expect("attach")
        peer.expect("flow")
        peer.outcomes(len(peer.publish(frames.message_to("one"), frames.message_to("two"))))

        def row() -> Row:
            [link] = rows(watch, "links", container="relaying")
            return link

        until(lambda: row()["outcomes"] == {"accepted": 2}, row)
        assert (row()["kind"], row()["node"]) == ("relay", None)


def test_pages_of_links_follow_one_another_and_miss_none(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    with Peer(gateway.port, container="many") as peer, Peer(gateway.port, container="many") as other:
        for handle in range(4):
            peer.publisher(f"many-{handle}", handle=handle)
            other.publisher(f"more-{handle}", handle=handle)
        whole = [row["id"] for row in rows(watch, "links", container="many")]
        assert len(set(whole)) == 8
        pages, after = [], ""
        while after is not None:
            _, _, body = watch.ask(f"/api/links?container=many&limit=3&after={after}")
            [answer] = json.loads(body)["gateways"]
            pages.append([row["id"] for row in answer["links"]])
            after = answer["next"]
        assert [len(page) for page in pages] == [3, 3, 2]
        assert [link_id for page in pages for link_id in page] == whole
        _, _, body = watch.ask("/api/connections?container=many&limit=1")
        [answer] = json.loads(body)["gateways"]
        assert [answer["next"]] == [row["id"] for row in answer["connections"]]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("limit=x", "limit=x is no whole number"),
        ("limit=-1", "limit=-1 is no whole number"),
        ("after=7", "7 is no ID of the run"),
        ("after=other-run.7", "other-run.7 is no ID of the run"),
    ],
)
def test_a_wrong_parameter_is_named(gateway: GatewayProcess, query: str, words: str) -> None:
    status, _, body = Watch.of(gateway).ask(f"/api/links?{query}")
    assert (status, words in json.loads(body)["gateways"][0]["problem"]) == (400, True), body


def test_a_connection_is_closed_with_a_reason_and_the_log_says_by_whom(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    with Peer(gateway.port, container="stuck") as peer, Peer(gateway.port, container="other") as other:
        peer.stored("closing", MESSAGE)
        peer.consumer("closing", credit=1)
        peer.receive(1)
        [row] = rows(watch, "connections", container="stuck")
        assert row["id"] in watch.command("connection", "close", row["id"], "--reason", "it holds order 4711")
        closed = peer.expect("close")
        assert closed.condition == "amqp:connection:forced"
        assert "it holds order 4711" in closed.field(0).value[1]
        gateway.await_log("it holds order 4711")
        [line] = [text for text in gateway.log_path.read_text().splitlines() if "it holds order 4711" in text]
        assert "@" in line and "from 127.0.0.1" in line and row["id"] in line and "'stuck'" in line
        peer.send(frames.close())
        until(lambda: not rows(watch, "connections", container="stuck"), watch.health)
        assert len(other.there("closing", 1)) == 1, "what it held comes again"
        assert rows(watch, "connections", container="other"), "and no other was closed"
        code, _, complaints = realmgate("connection", "close", row["id"], "--reason", "again", "--gateway", watch.url)
        assert (code, "there is no connection" in complaints) == (2, True), complaints


NOWHERE = "http://127.0.0.1:1"


@pytest.mark.parametrize("command", ["connections", "links", "errors", "denials", "top --interval 0.01"])
def test_a_gateway_that_is_gone_hides_no_other(gateway: GatewayProcess, command: str) -> None:
    watch = Watch.of(gateway)
    words = [*command.split(), "--gateway", NOWHERE, "--gateway", watch.url]
    with Peer(gateway.port, container="here") as peer:
        peer.publisher("there")
        code, shown, complaints = realmgate(*words)
        assert code == 1 and watch.health()["run"] in shown, shown
        assert command in ("errors", "denials") or "here" in shown
        assert complaints.count("\n") == 1 and f"{NOWHERE} does not answer: Connection refused; see" in complaints
        code, shown, _ = realmgate(*words, "--json")
        [here, gone] = json.loads(shown)["gateways"]
        assert (code, here["url"], gone["url"]) == (1, watch.url, NOWHERE)
        assert "Connection refused" in gone["problem"] and "problem" not in here
    code, _, complaints = realmgate(*words[:-2])
    assert (code, complaints.count(NOWHERE)) == (2, 2), "none answers: why, once"


def test_a_connection_is_closed_beside_a_gateway_that_is_gone(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    with Peer(gateway.port, container="to-close") as peer:
        [row] = rows(watch, "connections", container="to-close")
        words = ["connection", "close", row["id"], "--reason", "x"]
        for urls, expected in (((NOWHERE, watch.url), 0), ((watch.url, NOWHERE), 1)):
            given = [word for url in urls for word in ("--gateway", url)]
            code, _, complaints = realmgate(*words, *given)
            assert code == expected, complaints
            words[2] = "another-run.1"
        assert "none of the gateways that answer has the run another-run" in complaints and NOWHERE in complaints
        assert peer.expect("close").condition == "amqp:connection:forced"


def post(url: str, **headers: str) -> tuple[int, bytes]:
    request = urllib.request.Request(url, method="POST", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=HANG_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_a_web_page_or_a_nameless_client_closes_nothing(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    with Peer(gateway.port, container="kept"):
        [row] = rows(watch, "connections", container="kept")
        url = f"{watch.url}/api/connections/close?id={row['id']}&reason=x"
        assert post(url)[0] == 403
        assert post(url, **{"Realmgate-Who": "ann", "Origin": "https://evil.example"})[0] == 403
        assert post(url.replace("reason=x", ""), **{"Realmgate-Who": "ann"})[0] == 400
        assert watch.ask(url.removeprefix(watch.url))[0] == 405
        assert rows(watch, "connections", container="kept")


def test_a_gateway_that_takes_no_commands_closes_nothing(tmp_path: Path) -> None:
    gateway = start_gateway(tmp_path, embedded_realm(tmp_path), admin={**ADMIN, "commands": "none"})
    try:
        watch = Watch.of(gateway)
        with Peer(gateway.port):
            [row] = rows(watch, "connections")
            url = f"{watch.url}/api/connections/close?id={row['id']}&reason=x"
            status, body = post(url, **{"Realmgate-Who": "ann"})
            assert (status, b"takes no commands" in body) == (403, True)
            assert rows(watch, "connections")
    finally:
        gateway.stop()
