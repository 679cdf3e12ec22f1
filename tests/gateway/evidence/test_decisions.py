"""What was decided about something else than a delivery stands in the evidence: who, where from, by which rule; and no
peer fills the disk with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.evidence.decisions import LEFT_OUT_S, NAME_CHARACTERS, PIECE, SUMS_MAX, SUMS_S, Decisions
from gateway.evidence.notices import LINES
from gateway.evidence.outcomes import Outcomes
from mappings import Decision, Origin
from native_backend.nodes.grants import Subject
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.logins import PASSWORD, connect, write_users
from tests.kit.wire.peer import Peer
from tests.kit.wire.transacting import CONTROL, Transacting

Entry = dict[str, Any]
ORIGIN = Origin(profile="extended", digest="digest")
RULE = Decision("attach", "no", 3, {"condition": "amqp:not-found"})


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("decisions")
    write_users(directory / "users.yaml", ann=[])
    security = {"sasl": ["ANONYMOUS", "PLAIN"], "users": "users.yaml", "plain_without_tls": True}
    gateway = start_gateway(directory, embedded_realm(directory), security=security, nodes={})
    gateway.command("node", "create", "orders")
    yield gateway
    assert gateway.stop() == 0, gateway.log()


def listed(gateway: GatewayProcess, *options: str) -> list[Entry]:
    rows: list[Entry] = json.loads(gateway.command("decisions", "list", "--json", *options))
    return rows


def of_container(gateway: GatewayProcess, container: str) -> list[Entry]:
    """Those that are recorded when the gateway has ended; it is started again."""
    gateway.restart()
    return [row for row in listed(gateway) if row.get("container") == container]


def expect(entry: Entry, **wanted: Any) -> None:
    assert {key: entry.get(key) for key in wanted} == wanted, entry


def test_a_refused_attach_leaves_a_record(gateway: GatewayProcess) -> None:
    with Peer(gateway.port, container="lost") as peer:
        peer.send(frames.attach_sender("no-such-node", 0, "link-1"))
        assert peer.refused() == "amqp:not-found"
        peer.send(frames.attach_sender("no-such-node", 1, "link-2"))
        assert peer.refused() == "amqp:not-found"
    (entry,) = of_container(gateway, "lost")
    who = {"user": "anonymous", "container": "lost", "address": "127.0.0.1"}
    expect(entry, what="attach", table="attach", rule="refuse-an-unknown-node", condition="amqp:not-found", **who)
    expect(entry, direction="publish", link="link-1", node="no-such-node", count=1, **{"class": "fatal"})
    assert isinstance(entry["cell"], int) and isinstance(entry["at"], int) and entry["run"]
    assert {"what": "attach", "left_out": 1} in [
        {key: row[key] for key in ("what", "left_out")} for row in listed(gateway) if "left_out" in row
    ]
    printed = gateway.command("decisions", "list", "--what", "attach")
    assert "attach.refuse-an-unknown-node  amqp:not-found" in printed and "(left out)" in printed


def test_a_user_without_the_right_is_named(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "guarded")
    gateway.command("acl", "grant", "user:unknown", "publish", "--node", "guarded")
    connection = connect(gateway, PASSWORD, "PLAIN", user="ann")
    with pytest.raises(Exception, match="unauthorized-access"):
        connection.create_sender("guarded", name="denied")
    connection.close()
    gateway.restart()
    (entry,) = listed(gateway, "--what", "attach", "--user", "ann")
    expect(entry, rule="access-denied-refused", answer="access-denied", native="not-granted", node="guarded")
    expect(entry, condition="amqp:unauthorized-access", link="denied", address="127.0.0.1")
    assert entry["class"] == "fatal"


def test_a_fault_of_a_link_leaves_a_record(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "faults")
    with Peer(gateway.port, container="faulty") as peer:
        peer.stored("faults", frames.message())
        peer.consumer(frames.source("faults", outcomes=["accepted"]), credit=1, name="link-1")
        peer.receive(1)
        peer.settle([0], frames.state("rejected"))
        condition = peer.detached()
    (entry,) = of_container(gateway, "faulty")
    expect(entry, what="fault", table="fault", fault="outcome-not-agreed", link="link-1", user="anonymous")
    expect(entry, address="127.0.0.1", condition=condition, count=1)


def test_declares_and_discharges_are_counted_by_who_and_what(gateway: GatewayProcess) -> None:
    with Transacting(gateway.port, container="transacting") as peer:
        peer.publisher("orders")
        peer.control()
        for number in range(5):
            transaction = peer.declare()
            peer.post(transaction, frames.message())
            peer.dispositions(1)
            assert peer.discharge(transaction, fail=number % 2 == 1) == "accepted"
            peer.nothing_at_once()
        peer.send(frames.discharge(peer.number(), b"unknown", False, CONTROL))
        assert peer.expect("disposition").state == "rejected:amqp:transaction:unknown-id"
    rows = of_container(gateway, "transacting")
    counts = Counter[tuple[str | None, ...]]()
    for row in rows:  # a sum is recorded every `SUMS_S`
        counts[row["what"], row["rule"], row.get("answer_rule"), row.get("condition")] += row["count"]
    assert counts == {
        ("declare", "declare-begins", None, None): 5,
        ("commit", "commit", "done-accepted", None): 3,
        ("rollback", "rollback", None, None): 2,
        ("commit", "unknown-discharge-rejected", None, "amqp:transaction:unknown-id"): 1,
    }
    for row in rows:
        expect(row, user="anonymous", address="127.0.0.1", table="coordinate")
        assert ("answer" in row) is ("answer_rule" in row)


def test_a_subscription_that_ends_leaves_a_record(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "doomed")
    with Peer(gateway.port, container="listening") as peer:
        peer.consumer("doomed", credit=1)
        gateway.command("node", "delete", "doomed", "--yes")
        assert peer.detached() == "amqp:resource-deleted"
    (entry,) = of_container(gateway, "listening")
    expect(entry, what="subscription", rule="deleted-ends-the-subscription", node="doomed", answer="not-found")


def test_a_publisher_whose_node_is_deleted_leaves_a_record(gateway: GatewayProcess) -> None:
    gateway.command("node", "create", "doomed-too")
    with Peer(gateway.port, container="publishing") as peer:
        peer.publisher("doomed-too")
        gateway.command("node", "delete", "doomed-too", "--yes")
        assert peer.detached() == "amqp:resource-deleted"
    (entry,) = of_container(gateway, "publishing")
    expect(entry, what="publisher", rule="deleted-ends-the-publisher", node="doomed-too", answer="not-found")


def test_who_repeats_refused_attaches_does_not_fill_the_disk(gateway: GatewayProcess) -> None:
    """Each with a name of its own; what has no record is counted."""
    before = len(listed(gateway, "--what", "attach"))
    gateway.restart()
    with Peer(gateway.port, container="attacking") as peer:
        for number in range(LINES * 10):
            peer.send(frames.attach_sender(f"no-{number}", 0, f"link-{number}"))
            assert peer.refused() == "amqp:not-found"
            peer.send(frames.detach(0))
    gateway.restart()
    rows = listed(gateway, "--what", "attach")[before:]
    kept = [row for row in rows if row.get("container") == "attacking"]
    left_out = sum(row["left_out"] for row in rows if "left_out" in row)
    assert LINES <= len(kept) < LINES * 2 and len(kept) + left_out == LINES * 10


# -- the bounds, without a clock of their own


@dataclass
class Who:
    container: str = "c"
    address: str = "1.2.3.4"
    subject: Subject = field(default_factory=lambda: Subject("u"))


def refuse(decisions: Decisions, has_line: bool = True, **fields: Any) -> None:
    decisions.refused(has_line, "attach", RULE, Who(), **fields)


def count(decisions: Decisions, container: str = "c") -> None:
    decisions.counted("declare", RULE, None, Who(container))


def entries(decisions: Decisions) -> list[Entry]:
    return [entry for _, piece in decisions.take(ORIGIN) for entry in piece]


def test_a_refusal_without_a_line_is_counted_and_logged_once_in_a_while() -> None:
    decisions = Decisions()
    decisions.advance(1000.0)
    for _ in range(1000):
        refuse(decisions, has_line=False)
    decisions.advance(1000.0 + LEFT_OUT_S - 1)
    assert entries(decisions) == []
    decisions.advance(1000.0 + LEFT_OUT_S)
    assert entries(decisions) == [{"what": "attach", "left_out": 1000}]
    decisions.advance(1000.0 + 2 * LEFT_OUT_S)
    assert entries(decisions) == []


def test_requests_are_recorded_as_sums_of_so_many_different_ones() -> None:
    decisions = Decisions()
    decisions.advance(1000.0)
    for number in range(SUMS_MAX + 5):
        count(decisions, f"c-{number}")
        count(decisions, "c-0")
    assert not decisions.waiting
    decisions.advance(1000.0 + SUMS_S)
    pieces = decisions.take(ORIGIN)
    assert [len(piece) for _, piece in pieces] == [PIECE] * (SUMS_MAX // PIECE)
    counts = {entry["container"]: entry["count"] for _, piece in pieces for entry in piece}
    assert counts == {"c-0": SUMS_MAX + 6, **{f"c-{number}": 1 for number in range(1, SUMS_MAX)}}
    decisions.close()
    assert entries(decisions) == [{"what": "declare", "left_out": 5}]


def test_names_are_cut() -> None:
    decisions = Decisions()
    refuse(decisions, node="n" * 5000, link="", detail=None)
    (entry,) = entries(decisions)
    assert len(entry["node"]) == NAME_CHARACTERS and not {"link", "detail", "answer"} & set(entry)


def test_decisions_have_records_of_their_own_under_their_own_tables() -> None:
    written: list[Entry] = []
    clock = iter(range(10**6, 10**9, 10**6))
    outcomes = Outcomes("run", ORIGIN, lambda _, value: written.append(json.loads(value)), lambda: next(clock))
    outcomes.flush()
    assert written == []
    refuse(outcomes.decisions)
    older = Decision("attach", "no", 3, {"condition": None}, Origin(profile="extended", digest="older"))
    outcomes.decisions.refused(True, "attach", older, Who())
    outcomes.flush()
    assert [(row["n"], row["digest"], row["groups"], len(row["decisions"])) for row in written] == [
        (1, "digest", [], 1),
        (2, "older", [], 1),
    ]
    refuse(outcomes.decisions)
    outcomes.flush(closed=True)
    assert [(row["n"], row["closed"], "decisions" in row) for row in written[2:]] == [(3, 0, True), (4, 1, False)]
