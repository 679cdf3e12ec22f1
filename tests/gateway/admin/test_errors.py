"""Who was refused what, and why: each cause is made over a real socket and found in /api/errors and on the command
line; and no flood pushes out what others did."""

from __future__ import annotations

import json
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import proton
import pytest

from gateway.evidence.recent_errors import (
    ENTRIES,
    KEPT,
    MORE_NODE_CHARACTERS,
    MORE_NODES,
    PEER_ENTRIES,
    RULE_ENTRIES,
    SAME_S,
    RecentErrors,
)
from tests.kit.patience import until
from tests.kit.processes.admin_pages import DEADLINE_S, Watch
from tests.kit.processes.gateway import GatewayProcess, StartGateway, embedded_realm, realmgate, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.consumer_errors import error
from tests.kit.wire.logins import PASSWORD, connect, write_users
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE

ADMIN = {"listen": "http://127.0.0.1:0"}
Row = dict[str, Any]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("errors")
    write_users(directory / "users.yaml", ann=[], ben=[])
    security = {"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True}
    limits = {"message_size_bytes": 100_000}
    gateway = start_gateway(
        directory, embedded_realm(directory), security=security, admin=ADMIN, nodes={}, limits=limits
    )
    yield gateway
    assert gateway.stop() == 0, gateway.log()
    assert "Traceback" not in gateway.log_path.read_text(), gateway.log()


def errors(watch: Watch, **query: Any) -> list[Row]:
    status, _, body = watch.ask(f"/api/errors?{urllib.parse.urlencode(query)}")
    assert status == 200, body
    [answer] = json.loads(body)["gateways"]
    rows: list[Row] = answer["errors"]
    return rows


def errors_of(watch: Watch, **query: Any) -> list[Row]:
    """As soon as there are any."""
    end = time.monotonic() + DEADLINE_S
    while not (rows := errors(watch, **query)):
        assert time.monotonic() < end, errors(watch)
        time.sleep(0.05)
    return rows


def expect(row: Row, **wanted: Any) -> None:
    assert {key: row[key] for key in wanted} == wanted, row


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_a_misspelt_queue_and_a_full_one_are_found(new_gateway: StartGateway, kind: str) -> None:
    gateway = new_gateway(kind, admin=ADMIN, nodes={})
    watch = Watch.of(gateway)
    gateway.command("node", "create", "orders")
    gateway.command("node", "create", "small", "--capacity-events", "2", "--honour-capacity", "true")
    with Peer(gateway.port, container="shop") as peer:
        peer.send(frames.attach_sender("oders", 7, "to-oders"))
        assert peer.refused() == "amqp:not-found"
        [row] = errors_of(watch, node="oders")
        expect(row, what="attach", user="anonymous", container="shop", address="127.0.0.1", link="to-oders", count=1)
        expect(row, condition="amqp:not-found", rule="attach.refuse-an-unknown-node", direction="publish")
        assert row["class"] == "fatal"
        peer.publisher("small")
        states = peer.outcomes(len(peer.publish(*[MESSAGE] * 5)))
        assert "rejected:amqp:resource-limit-exceeded" in states.values()
        [row] = errors_of(watch, node="small", what="delivery")
        expect(
            row,
            container="shop",
            answer="capacity-reached",
            condition="amqp:resource-limit-exceeded",
            outcome="rejected",
        )
        assert row["count"] == sum(str(state).startswith("rejected") for state in states.values())
        run, _, seq = row["delivery"].rpartition(":")
        assert run == watch.health()["run"] and int(seq) >= 1
        assert row["rule"].startswith("published.capacity-reached")
        assert row["class"] == "transient" and row["text"]
    [row] = errors_of(watch, node="oders")
    assert row["text"] == "oders: there is no node of this name"
    assert "did you mean orders?" in row["remedy"]
    shown = watch.command("errors", "--since", "10m", "--node", "oders")
    [remedy] = [at for at, line in enumerate(shown.splitlines()) if "did you mean orders?" in line]
    assert "refuse-an-unknown-node" in shown.splitlines()[remedy - 1], "below its row"
    assert "attach.refuse-an-unknown-node" in shown and "shop" in shown and "small" not in shown


def test_a_wrong_password_is_found_with_its_user(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    with pytest.raises(proton.ConnectionException):
        connect(gateway, f"{PASSWORD}?", "PLAIN", user="ann")
    [row] = errors_of(watch, what="login", user="ann")
    expect(row, fault="failed-login", address="127.0.0.1", **{"class": "fatal"})
    assert watch.metrics()["realmgate_errors_total", ("fatal", "failed-login", "", "", "login")] >= 1
    assert PASSWORD not in json.dumps(row)
    assert "failed-login" in watch.command("errors", "--user", "ann")
    assert errors(watch, user="ann", since=row["at_us"]) == [row]
    assert errors(watch, user="ann", since=row["at_us"] + 1) == []


def test_a_mechanism_that_is_not_offered_is_found(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    with Peer(gateway.port, begin=False) as peer:
        peer.send(b"HTTP/1.1 ")
        assert peer.closed()
    [row] = [entry for entry in errors_of(watch, what="login") if entry["fault"] == "sasl"]
    expect(row, address="127.0.0.1", user=None)


def test_a_denied_attach_and_a_right_that_was_lost_are_found(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    gateway.command("node", "create", "guarded")
    gateway.command("acl", "grant", "user:ben", "publish", "--node", "guarded")
    connection = connect(gateway, PASSWORD, "PLAIN", user="ben")
    sender = connection.create_sender("guarded", name="loses-it")
    sender.send(proton.Message(body="x"))
    denied = connect(gateway, PASSWORD, "PLAIN", user="ann")
    with pytest.raises(Exception, match="unauthorized-access"):
        denied.create_sender("guarded")
    [row] = errors_of(watch, answer="access-denied", user="ann")
    expect(row, what="attach", node="guarded", condition="amqp:unauthorized-access", native="not-granted")
    assert row["text"] == "guarded: its access list does not allow this user; ask its operator"
    gateway.command("acl", "grant", "user:ann", "publish", "--node", "guarded")
    gateway.command("acl", "revoke", "user:ben", "publish", "--node", "guarded")
    with pytest.raises(Exception, match="unauthorized-access"):
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            sender.send(proton.Message(body="x"))
    [row] = errors_of(watch, answer="access-denied", user="ben")
    expect(row, what="delivery", node="guarded", link="loses-it", direction="publish", address="127.0.0.1")
    shown = watch.command("denials", "--since", "1h")
    assert "ann" in shown and "ben" in shown and "oders" not in shown
    for client in (connection, denied):
        client.close()


def test_a_message_that_is_too_large_is_found_with_its_node(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    gateway.command("node", "create", "letters")
    with Peer(gateway.port, container="large") as peer:
        peer.publisher("letters")
        peer.publish(frames.message(bytes(60_000)), frames.message(b""))
        peer.outcomes(2)
        number = 2
        half = frames.message(bytes(60_000))
        peer.send(frames.transfer(number, half, 0, more=True), frames.transfer(number, half, 0))
        assert peer.detached() == "amqp:link:message-size-exceeded"
    [row] = errors_of(watch, container="large")
    condition = "amqp:link:message-size-exceeded"
    expect(row, what="fault", node="letters", condition=condition, user="anonymous", **{"class": "fatal"})
    [line] = [text for text in gateway.log_path.read_text().splitlines() if "peer fault message-too-large" in text]
    for word in ("node 'letters'", "link '", "fault.message-too-large", condition, "container 'large'"):
        assert word in line, line
    counted = watch.metrics()
    labels = ("fatal", "message-too-large", condition, "letters", "fault.message-too-large")
    assert counted["realmgate_errors_total", labels] == 1


def test_a_message_that_is_too_large_for_its_consumer_is_counted_and_found(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    gateway.command("node", "create", "parcels")
    with Peer(gateway.port, container="narrow") as peer:
        peer.stored("parcels", frames.message(bytes(5_000)), MESSAGE)
        peer.send(frames.attach_receiver("parcels", 5, "sub", size_max=1_000))
        peer.gateway_handles[5], peer.delivered[5] = peer.expect("attach").field(1), 0
        peer.credit(10, 5)
        assert len(peer.receive(1, 5)) == 1, "the other one"
    [row] = errors_of(watch, container="narrow", what="delivery")
    expect(row, node="parcels", fault="too-large-for-the-consumer", rule="settle.too-large-returns-elsewhere", count=1)
    expect(row, user="anonymous", link="sub", direction="subscribe", answer="done")
    assert row["remedy"].startswith("let the consumer take larger messages (its max-message-size)")
    labels = ("", "too-large-for-the-consumer", "", "parcels", row["rule"])
    counted = watch.metrics()
    assert {key[1]: counted[key] for key in counted if key[0] == "realmgate_errors_total" and "parcels" in key[1]} == {
        labels: 1
    }
    assert counted["realmgate_told_errors_total", ("none",)] >= 1
    log_text = gateway.log_path.read_text().splitlines()
    [line] = [text for text in log_text if "peer fault too-large-for-the-consumer" in text]
    assert "container 'narrow'" in line and "takes 1000 octets" in line


def test_what_a_consumer_gives_up_is_found_with_its_reason(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    gateway.command("node", "create", "unkept")
    with Peer(gateway.port, container="rejecter") as peer:
        peer.stored("unkept", *[MESSAGE] * 3)
        peer.consumer("unkept", credit=3)
        first, *others = [seen.field(1) for seen in peer.receive(3)]
        peer.settle([first], frames.state("rejected", error("app:bad", "cannot parse order 4711")))
        peer.settle(others, frames.state("rejected"))
    rows: list[Row] = []

    def are_found() -> bool:
        rows[:] = errors(watch, what="given-up", container="rejecter")
        return bool(sum(row["count"] for row in rows) == 3)

    until(are_found, "the three")
    by_condition = {row["condition"]: row for row in rows}
    expect(by_condition["app:bad"], node="unkept", rule="settle.rejected-dead-letters", answer="dead-letter", count=1)
    assert by_condition["app:bad"]["text"] == "app:bad: cannot parse order 4711"
    assert (by_condition[None]["count"], by_condition[None]["text"]) == (2, "the consumer said no reason")
    assert "nothing is kept of them" in by_condition[None]["remedy"]
    assert not [key for key in watch.metrics() if key[0] == "realmgate_errors_total" and "unkept" in key[1]], "no error"


def test_a_flood_of_one_peer_pushes_out_nothing_of_another(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    connection = connect(gateway, PASSWORD, "PLAIN", user="ben")
    with pytest.raises(Exception, match="not-found"):
        connection.create_sender("before-the-flood")
    connection.close()
    count = 300
    with Peer(gateway.port, container="flooding") as peer:
        for number in range(count):
            peer.send(frames.attach_sender(f"no-{number}", 0, f"link-{number}"))
            assert peer.refused() == "amqp:not-found"
            peer.send(frames.detach(0))
    rows = errors_of(watch, container="flooding", limit=1000)
    assert len(rows) <= PEER_ENTRIES
    assert sum(row["count"] for row in rows) <= count
    kept = errors(watch, limit=1000)
    assert max(row["more"] for row in kept) > count / 2
    assert any(f"no-{int(RULE_ENTRIES)}" in row["more_nodes"] for row in kept)
    assert errors(watch, node="before-the-flood")


def test_pages_of_errors_follow_one_another(gateway: GatewayProcess) -> None:
    watch = Watch.of(gateway)
    whole = [row["id"] for row in errors(watch, limit=1000)]
    assert len(whole) > 3
    paged, after = [], ""
    while after is not None:
        [answer] = json.loads(watch.ask(f"/api/errors?limit=2&after={after}")[2])["gateways"]
        paged += [row["id"] for row in answer["errors"]]
        after = answer["next"]
    assert paged == whole


def test_a_time_without_a_zone_is_refused(gateway: GatewayProcess) -> None:
    code, _, complaints = realmgate("errors", "--since", "2026-11-23", "--gateway", Watch.of(gateway).url)
    assert (code, "is no time: write" in complaints) == (2, True)


def test_clients_without_an_id_hide_nothing_of_another_container(new_gateway: StartGateway) -> None:
    """A client without a container-id of its own makes one each time it connects."""
    gateway = new_gateway("embedded", admin=ADMIN, nodes={})
    watch = Watch.of(gateway)
    gateway.command("node", "create", "paid", "--capacity-events", "1", "--honour-capacity", "true")
    for number in range(60):
        with Peer(gateway.port, container=f"generated-{number}") as peer:
            peer.send(frames.attach_sender("ordres", 0, f"link-{number}"))
            assert peer.refused() == "amqp:not-found"
    with Peer(gateway.port, container="billing") as peer:
        peer.publisher("paid")
        states = peer.outcomes(len(peer.publish(*[MESSAGE] * 50)))
    refused = sum(str(state).startswith("rejected") for state in states.values())
    [full] = errors_of(watch, node="paid")
    expect(full, count=refused, container="billing", more=0)
    rows = errors(watch, node="ordres")
    assert len(rows) <= 2 and sum(row["count"] for row in rows) == 60, "one a minute"
    assert [example["container"] for example in rows[-1]["examples"]] == [f"generated-{n}" for n in (57, 58, 59)]
    assert rows[-1]["examples"][-1]["link"] == "link-59"
    assert errors(watch, container="generated-59") == rows[-1:]


# -- the bounds, with a clock of our own


class Clock:
    now_us = 1_000_000_000

    def __call__(self) -> int:
        return self.now_us


def add(recent: RecentErrors, user: str, node: str, count: int = 1) -> None:
    recent.add({"what": "attach", "user": user, "address": "1.2.3.4", "node": node}, "text", count)


def test_what_is_the_same_is_one_entry_for_a_while() -> None:
    clock = Clock()
    recent = RecentErrors("run", clock)
    for _ in range(50):
        add(recent, "ann", "orders", 2)
    add(recent, "ann", "other")
    assert [(entry.number, entry.count) for entry in recent.above(0)] == [(1, 100), (2, 1)]
    clock.now_us += int(SAME_S * 1e6)
    add(recent, "ann", "orders")
    assert [(entry.number, entry.count) for entry in recent.above(1)] == [(2, 1), (3, 1)]


def test_containers_links_and_durables_are_examples_of_an_entry() -> None:
    recent = RecentErrors("run", Clock())
    for n in range(60):
        names = {"container": f"c{n}", "link": f"l{n}", "durable": f"c{n}:l{n}"}
        recent.add(
            {"what": "attach", "user": "ann", "address": "1.2.3.4", "node": "ordres", "rule": "a.b", **names}, ""
        )
    [entry] = recent.above(0)
    assert (entry.count, entry.facts["container"]) == (60, "c0")
    assert [example["durable"] for example in entry.examples] == ["c57:l57", "c58:l58", "c59:l59"]


def test_names_that_a_peer_invents_leave_it_entries_for_its_other_errors() -> None:
    clock = Clock()
    recent = RecentErrors("run", clock)
    facts = {"what": "attach", "user": "ann", "address": "1.2.3.4"}
    for minute in range(10):
        clock.now_us += 60_000_000
        for n in range(1_000):
            recent.add({**facts, "rule": "attach.unknown", "node": f"no-{minute}-{n}"}, "")
        recent.add({**facts, "what": "delivery", "rule": "published.full", "node": "orders"}, "", 500)
    full = [entry for entry in recent.above(0) if entry.facts["node"] == "orders"]
    assert [(entry.count, entry.more) for entry in full] == [(500, 0)] * 10
    unknown = [entry for entry in recent.above(0) if entry.facts["node"] != "orders"]
    assert RULE_ENTRIES < len(unknown) < 3 * RULE_ENTRIES
    assert sum(row.count + row.more for row in unknown) == 10_000, "what has no entry is counted in one of its rule"


def test_the_names_of_nodes_beyond_its_entries_are_in_the_last_one_of_the_rule() -> None:
    """An application whose forty queues are not there."""
    recent = RecentErrors("run", Clock())
    facts = {"what": "attach", "user": "ann", "address": "1.2.3.4", "rule": "attach.unknown"}
    for _ in range(2):
        for number in range(40):
            recent.add({**facts, "node": f"queue-{number:02}"}, "")
    recent.add({**facts, "rule": "attach.other", "node": "of another rule"}, "")
    entries = [entry for entry in recent.above(0) if entry.facts["rule"] == "attach.unknown"]
    own = [entry.facts["node"] for entry in entries]
    assert own == [f"queue-{number:02}" for number in range(len(own))] and len(own) == RULE_ENTRIES
    assert [entry.more_nodes for entry in entries[:-1]] == [{}] * (len(entries) - 1)
    assert [*entries[-1].more_nodes] == [f"queue-{number:02}" for number in range(len(own), 40)]
    for number in range(1_000):
        recent.add({**facts, "node": f"{number}" * 200}, "")
    names = [*entries[-1].more_nodes]
    assert len(names) == MORE_NODES and max(map(len, names)) == MORE_NODE_CHARACTERS


def test_user_names_that_a_peer_invents_are_one_peers() -> None:
    recent = RecentErrors("run", Clock())
    for number in range(1_000):
        recent.add({"what": "login", "fault": "failed-login", "user": f"u{number}", "address": "1.2.3.4"}, "")
    assert (len([*recent.above(0)]), recent.left_out) == (RULE_ENTRIES, 0)


def test_many_peers_have_so_many_entries_together_and_the_rest_is_counted() -> None:
    clock = Clock()
    recent = RecentErrors("run", clock)
    for number in range(int(ENTRIES) + 50):
        add(recent, f"user-{number}", "orders")
    assert (len([*recent.above(0)]), recent.left_out) == (ENTRIES, 50)


def test_the_oldest_entries_go() -> None:
    clock = Clock()
    recent = RecentErrors("run", clock)
    for number in range(KEPT + 10):
        clock.now_us += 1_000_000
        add(recent, f"user-{number}", "orders")
    kept = [entry.number for entry in recent.above(0)]
    assert (len(kept), kept[0], kept[-1]) == (KEPT, 11, KEPT + 10)
