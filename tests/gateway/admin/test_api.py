"""`/api/nodes`, `durables`, `rules`, `transactions` and `gateway`: each fact is caused over a real socket."""

from __future__ import annotations

import json
import os
import time
import urllib.parse
from collections.abc import Coroutine, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from gateway.admin.answers import Answering
from gateway.admin.http import Request, Response
from gateway.admin.transactions import transactions
from mappings import load_tables
from native_backend.limits import RealmLimits
from tests.kit.patience import until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import GatewayProcess, StartGateway, embedded_realm, start_gateway
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import ACCEPTED as ALL_WELL
from tests.kit.wire.reloading import BAD, MESSAGE, Folder
from tests.kit.wire.scripted_gateway import ScriptedGateway
from tests.kit.wire.transacting import CONTROL, Transacting

ADMIN = {"listen": "http://127.0.0.1:0"}
NODES = {"create_on_attach": ["page.*", "ruled", "books.*"]}
ACCEPTED = frames.state("accepted")
Row = dict[str, Any]


def answer(watch: Watch, what: str, **query: object) -> Row:
    """As `/health` says it: what a gateway is can become another thing between two questions."""
    before = watch.health()
    status, _, body = watch.ask(f"/api/{what}?{urllib.parse.urlencode(query)}")
    assert status == 200, body
    [reply] = json.loads(body)["gateways"]
    assert reply["run"] == before["run"]
    assert reply["state"] in (before["state"], watch.health()["state"])
    return dict(reply)


def rows(watch: Watch, what: str, **query: object) -> list[Row]:
    entries: list[Row] = answer(watch, what, **query)[what]
    return entries


def row(watch: Watch, what: str, **query: object) -> Row:
    [entry] = rows(watch, what, **query)
    return entry


def pages(watch: Watch, what: str, limit: int, **query: object) -> list[list[str]]:
    """The IDs of each page."""
    listing, after = [], ""
    while after is not None:
        page = answer(watch, what, limit=limit, **query, **({"after": after} if after else {}))
        listing.append([entry["id"] for entry in page[what]])
        after = page["next"]
    return listing


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("api")
    gateway = start_gateway(directory, embedded_realm(directory), admin=ADMIN, nodes=NODES)
    yield gateway
    assert gateway.stop() == 0, gateway.log()
    assert "Traceback" not in gateway.log_path.read_text(), gateway.log()


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_nodes_and_durables_have_their_numbers(new_gateway: StartGateway, kind: str) -> None:
    gateway = new_gateway(kind, admin=ADMIN)
    watch = Watch.of(gateway)
    full = ("capacity-events=2", "honour-capacity=true", "dead-letter=dead", "ttl=1h")
    gateway.command("node", "create", "full", "--kind", "queue", "--partitions", "1")
    gateway.command("node", "create", "dead", "--kind", "queue")
    gateway.command("node", "set", "full", *full)
    with Peer(gateway.port, container="app") as peer:
        peer.publisher("news", "channel", handle=3)
        peer.consumer(frames.source("news", durable=2, expiry="never"), name="all", handle=2)
        peer.outcomes(len(peer.publish(*[MESSAGE] * 4, handle=3)))
        peer.publisher("full")
        outcomes = [*peer.outcomes(len(peer.publish(*[MESSAGE] * 3))).values()]
        assert outcomes.count("accepted") == 2
        peer.consumer("full", credit=1)
        peer.receive(1)
        queue: Row = {"messages": 2, "messages_max": 2, "full": "refuses", "available": 1, "unsettled": 1, "delayed": 0}
        queue |= {"consumers": 1, "durables": 0, "dead_letter": "dead", "ttl_ms": 3_600_000, "problem": None}
        queue |= {"kind": "queue", "partitions": 1, "temporary": False, "adopted": False, "size_bytes_max": None}
        queue |= {"deliveries": {"in": {"accepted": 2, "rejected": 1}, "out": {}}, "dead_letters": {}}
        channel: Row = {"messages": 4, "messages_max": None, "full": None, "available": None, "unsettled": None}
        channel |= {"consumers": 1, "durables": 1, "kind": "channel", "deliveries": {"in": {"accepted": 4}, "out": {}}}
        watch.until(lambda: queue.items() <= row(watch, "nodes", node="full").items())
        watch.until(lambda: channel.items() <= row(watch, "nodes", node="news").items())
        watch.until(lambda: (row(watch, "nodes", node="full")["oldest_s"] or 0) >= 1)
        assert row(watch, "nodes", node="dead")["oldest_s"] is None, "it has no message"
        assert row(watch, "nodes", node="full")["size_bytes"] > 0
        durable = row(watch, "durables", node="news")
        facts = {"durable": "app:all", "stored": 4, "available": 4, "unsettled": 0, "partition": 0, "consumers": 1}
        facts |= {"shared": False, "expiry": "never", "opened": True, "selector": None, "hole_events": 0}
        assert facts.items() <= durable.items(), durable
        state = row(watch, "durables", node="full", durable="queue")
        assert (state["stored"], state["position_eid"] - state["low_eid"], state["shared"]) == (2, 1, None)
        assert state["oldest_s"] >= 1
        peer.settle([0], frames.state("rejected"))
        watch.until(lambda: row(watch, "nodes", node="full")["dead_letters"] == {"rejected": 1})
        assert row(watch, "nodes", node="full")["messages"] == 1


def test_pages_of_nodes_and_durables_follow_one_another_and_miss_none(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    names = ["page.ä", "page.b", 'page.c"x', "page.d&e", "page.f"]
    with Peer(gateway.port) as peer:
        for handle, name in enumerate(names):
            peer.publisher(name, handle=handle)
        every = [entry["id"] for entry in rows(watch, "nodes")]
        assert every == sorted(every) and set(names) <= set(every)
        listing = pages(watch, "nodes", 2)
        assert [key for page in listing for key in page] == every
        assert {len(page) for page in listing[:-1]} == {2}
        durables = [entry["id"] for entry in rows(watch, "durables")]
        assert {json.loads(key)[0] for key in durables} >= set(names)
        assert [key for page in pages(watch, "durables", 3) for key in page] == durables
        assert answer(watch, "nodes", limit=len(every))["next"] is None, "there are no more"
        assert rows(watch, "nodes", node="missing") == rows(watch, "durables", node="missing") == []


def test_each_rule_has_its_hits_and_its_errors(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    with Peer(gateway.port) as peer:
        peer.publisher("ruled")
        peer.outcomes(len(peer.publish(*[MESSAGE] * 3)))
        peer.send(frames.attach_sender("nowhere", 7, "to-nowhere"))
        assert peer.refused() == "amqp:not-found"

    def of(rule: str) -> Row:
        return {entry["id"]: entry for entry in rows(watch, "rules", limit=500)}[rule]

    watch.until(lambda: of("published.stored-accepted")["hits"] >= 3)
    stored, refused = of("published.stored-accepted"), of("attach.refuse-an-unknown-node")
    assert stored["then"]["outcome"] == "accepted" and stored["cells"] > 0 and stored["errors"] == 0
    assert (refused["hits"], refused["then"]["condition"]) == (None, "amqp:not-found"), "attaches are not counted"
    assert refused["errors"] >= 1
    assert of("settle.rejected-dead-letters")["hits"] == 0, "never hit"
    reply = answer(watch, "rules", limit=500)
    assert {"digest": reply["digest"], "profile": reply["profile"]} == watch.health()["tables"]
    ids = [entry["id"] for entry in reply["rules"]]
    assert len(ids) == answer(watch, "gateway")["gateway"]["tables"]["rules"]
    assert [key for page in pages(watch, "rules", 50) for key in page] == ids
    published = load_tables()["published"]
    assert {entry["rule"] for entry in rows(watch, "rules", table="published")} == set(published.rules)


def test_open_transactions_say_who_since_when_and_how_much(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    with Transacting(gateway.port, container="books") as peer, Transacting(gateway.port, container="other") as other:
        peer.stored("books.in", *[MESSAGE] * 2)
        peer.publisher("books.out", handle=0)
        peer.consumer("books.in", credit=2)
        numbers = [frame.field(1) for frame in peer.receive(2)]
        first = peer.begun()
        other.begun()
        peer.post(first, *[MESSAGE] * 3)
        peer.settle(numbers, frames.in_transaction(first, ACCEPTED), settled=False)
        wanted = {
            "container": "books",
            "state": "open",
            "messages": 3,
            "size_bytes": 3 * len(MESSAGE),
            "settlements": 2,
        }
        wanted |= {"nodes": ["books.in", "books.out"], "transaction": first.hex(), "address": "127.0.0.1"}

        def shown() -> Row:
            return row(watch, "transactions", container="books")

        watch.until(lambda: wanted.items() <= shown().items())
        assert abs(shown()["since_us"] / 1e6 - time.time()) < 600 and shown()["age_s"] >= 0
        assert shown()["connection"] == row(watch, "connections", container="books")["id"]
        assert [len(page) for page in pages(watch, "transactions", 1)] == [1, 1]
        number = peer.number()
        peer.send(frames.discharge(number, first, False, CONTROL))
        assert peer.until_told([], number)[number] == "accepted"
        watch.until(lambda: not rows(watch, "transactions", container="books"))
        assert len(rows(watch, "transactions")) == 1


def driven(page: Coroutine[Any, Any, Response]) -> Response:
    """What it comes to, without a loop."""
    try:
        while True:
            page.send(None)
    except StopIteration as end:
        response: Response = end.value
        return response


def test_a_commit_that_the_realm_has_not_answered_is_shown() -> None:
    def shown() -> list[Row]:
        answering = Answering(scripted.realm.run, 0, "ready")
        made = scripted.do(lambda: driven(transactions(scripted.gateway, answering, Request({}, {}, ""))))
        assert made.status == HTTPStatus.OK
        entries: list[Row] = json.loads(made.body)["gateways"][0]["transactions"]
        return entries

    with ScriptedGateway(load_tables()) as scripted, Transacting(scripted.port) as peer:
        peer.publisher("q")
        transaction = peer.begun()
        scripted.realm.holds.add("commit")
        peer.post(transaction, MESSAGE)
        peer.send(frames.discharge(peer.number(), transaction, False, CONTROL))
        scripted.until(lambda: "commit 0 1" in scripted.realm.calls)
        assert [(entry["state"], entry["messages"]) for entry in shown()] == [("committing", 1)]
        scripted.do(scripted.realm.release)
        until(lambda: shown() == [], "the transaction to end")


def test_a_gateway_says_what_it_is_and_which_tables_it_refuses(new_gateway: StartGateway, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "ours")
    before_us = time.time_ns() // 1000
    process = new_gateway("embedded", admin=ADMIN, mappings={"dir": str(folder.directory)})
    watch = Watch.of(process)
    shown = answer(watch, "gateway")["gateway"]
    assert (shown["pid"], shown["host"]) == (process.pid, os.uname().nodename)
    assert shown["version"] and shown["listen"] == [f"amqp://{process.address}"]
    assert before_us <= shown["since_us"] <= time.time_ns() // 1000
    assert (shown["realm"]["kind"], shown["realm"]["taken_over"]) == ("embedded", False)
    assert (shown["lease"]["held"], shown["lease"]["term"]) == (True, 1)
    assert 0 <= shown["lease"]["looked_s"] < shown["lease"]["lapses_s"] == 5
    tables = shown["tables"]
    assert {name: tables[name] for name in ("digest", "profile")} == watch.health()["tables"]
    assert (tables["directory"], tables["refused"]) == (str(folder.directory), [])
    assert tables["rules"] > 100
    with Peer(process.port) as peer:
        peer.publisher("q")
        watch.until(lambda: answer(watch, "gateway")["gateway"]["links"] == 1)
        assert answer(watch, "gateway")["gateway"]["connections"] == 1
    folder.write(BAD)
    watch.until(lambda: len(answer(watch, "gateway")["gateway"]["tables"]["refused"]) == 1)
    assert answer(watch, "gateway")["gateway"]["tables"]["digest"] == tables["digest"]
    folder.write(ALL_WELL)
    process.restart()
    again = answer(Watch.of(process), "gateway")["gateway"]
    assert (again["lease"]["term"], again["since_us"] > shown["since_us"]) == (2, True)


def test_a_lease_that_was_not_looked_at_has_lapsed() -> None:
    world = SimulatedWorld("lapsing")
    realm = RealmProcess(world, "um", RealmLimits(lease_s=3.0)).open()
    assert (realm.realm.metrics.lease.held, realm.realm.metrics.lease.lapses_s) == (True, 3.0)
    realm.clock.lapse(10.0)
    lease = realm.realm.metrics.lease
    assert (lease.held, lease.looked_s >= 10) == (False, True)
    realm.close()
    world.close()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("nodes?limit=x", "limit=x is no whole number"),
        ("durables?after=orders", "after=orders is no ID of a durable"),
        ("durables?after=%5B%22a%22,%22b%22,true%5D", "is no ID of a durable"),
        ("rules?table=nonsense", "there is no table nonsense: "),
        ("transactions?after=7", "7 is no ID of the run"),
    ],
)
def test_a_wrong_parameter_is_named(gateway: GatewayProcess, path: str, words: str) -> None:
    status, _, body = Watch.of(gateway).ask(f"/api/{path}")
    assert (status, words in json.loads(body)["gateways"][0]["problem"]) == (400, True), body
