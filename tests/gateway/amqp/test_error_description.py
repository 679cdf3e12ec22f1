"""What a peer is told: short, with the node's name and what to do, and an info map for programs; over a socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gateway.amqp.error_description import DESCRIPTION_BYTES_MAX, describe_error
from mappings import load_tables
from mappings.compiler.errors import shipped_errors
from mappings.language.vocabulary import PROFILES
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_gateway import ScriptedGateway
from tests.kit.wire.transacting import CONTROL, Transacting

TABLES = load_tables()
LOGS = ("kafka", "sqlite")


@pytest.fixture
def gateway() -> Iterator[ScriptedGateway]:
    with ScriptedGateway(TABLES) as gateway:
        yield gateway


def error_of(seen: Seen) -> tuple[str, str, dict[str, Any]]:
    """Condition, description and info of a rejected disposition or a DETACH."""
    error = seen.field(2) if seen.name == "detach" else seen.field(4).value[0]
    condition, description, info = error.value
    return str(condition), description, {str(key): value for key, value in info.pairs}


def test_a_rejection_tells_the_publisher_what_to_do_and_when(gateway: ScriptedGateway) -> None:
    with Peer(gateway.port) as peer:
        peer.publisher("q")
        gateway.realm.answers["publish"] = "capacity-reached"
        peer.publish(frames.message())
        condition, description, info = error_of(peer.expect("disposition"))
        assert condition == "amqp:resource-limit-exceeded"
        assert description == "q: it is full; try again when events were taken"
        assert info == {
            "native-code": "SCRIPTED",
            "rule": "published.capacity-reached-rejected",
            "retry-after-ms": 1000,
        }
        gateway.realm.answers["publish"] = "not-found"
        peer.publish(frames.message())
        condition, description, info = error_of(peer.expect("disposition"))
        assert (condition, description) == ("amqp:not-found", "q: it is not there; create it, then attach again")
        assert "retry-after-ms" not in info, "no one is told to wait where that would not help"
        assert error_of(peer.expect("detach"))[1:] == (description, info)


def test_a_refused_attach_and_a_failed_settle_say_so_too(gateway: ScriptedGateway) -> None:
    with Peer(gateway.port) as peer:
        peer.send(frames.attach_receiver("missing"))
        peer.expect("attach")
        condition, description, info = error_of(peer.expect("detach"))
        assert (condition, description) == (
            "amqp:not-found",
            "missing: refuse an unknown node; create it, then attach again",
        )
        assert info == {"rule": "attach.refuse-an-unknown-node"}
        peer.send(frames.detach(1))
        peer.consumer("q", credit=1)
        peer.stored("q", frames.message())
        peer.receive(1)
        gateway.realm.answers["settle"] = "access-denied"
        peer.settle([0], frames.state("accepted"), settled=False)
        condition, description, info = error_of(peer.expect("disposition"))
        assert (condition, info["rule"]) == ("amqp:unauthorized-access", "settled.access-denied-rejected")
        assert description == "q: its access list does not allow this user; ask its operator"


def test_a_coordinator_says_what_to_do_too(gateway: ScriptedGateway) -> None:
    with Transacting(gateway.port) as peer:
        transaction = peer.begun()
        peer.publisher("q")
        peer.post(transaction, frames.message())
        peer.dispositions(1)
        gateway.realm.answers["commit"] = "capacity-reached"
        peer.send(frames.discharge(peer.number(), transaction, False, CONTROL))
        condition, description, info = error_of(peer.expect("disposition"))
        assert condition == "amqp:transaction:rollback"
        assert description == "commit: it is full; try again when events were taken"
        assert (info["native-code"], info["retry-after-ms"]) == ("SCRIPTED", 1000)
        assert info["rule"] == "committed.failed-rejected"
        gateway.realm.answers["commit"] = "not-found"
        transaction = peer.declare()
        peer.post(transaction, frames.message())
        peer.dispositions(1)
        peer.send(frames.discharge(peer.number(), transaction, False, CONTROL))
        condition, description, info = error_of(peer.expect("disposition"))
        assert (condition, info["native-code"]) == ("amqp:transaction:rollback", "SCRIPTED")
        assert "retry-after-ms" not in info, "the node does not come back by waiting"
        peer.send(frames.discharge(peer.number(), b"unknown", False, CONTROL))
        condition, description, info = error_of(peer.expect("disposition"))
        assert condition == "amqp:transaction:unknown-id"
        words = info["rule"].removeprefix("coordinate.").replace("-", " ")
        assert description == f"commit: {words}; declare a transaction first"
        assert info["rule"].startswith("coordinate.") and len(info) == 1, "to wait does not make it known"


@pytest.mark.parametrize("rcv", [0, 1], ids=["settled", "waits"])
def test_what_a_transaction_turns_away_says_what_to_do(gateway: ScriptedGateway, rcv: int) -> None:
    """Inside the transactional state, and where its publisher settles first, at the discharge again (1.3-I)."""
    with Transacting(gateway.port) as peer:
        peer.publisher("q", rcv=rcv)
        transaction = peer.begun()
        gateway.realm.answers["post"] = "capacity-reached"
        peer.post(transaction, frames.message())
        provisional = peer.expect("disposition")
        assert (provisional.field(3) is True) is (rcv == 0)
        [error] = provisional.field(4).value[1].value
        condition, description, info = error.value
        assert str(condition) == "amqp:resource-limit-exceeded"
        assert description == "q: it is full; try again when events were taken"
        pairs = {str(key): value for key, value in info.pairs}
        word = ("settled", "waits")[rcv]
        assert pairs == {"rule": f"posted.capacity-reached-rejected-{word}", "retry-after-ms": 1000}
        assert peer.discharge(transaction) == "accepted"
        if rcv:
            assert error_of(peer.expect("disposition")) == (condition, description, pairs)
        transaction = peer.declare()
        gateway.realm.answers["post"] = "not-found"
        peer.post(transaction, frames.message())
        assert peer.expect("disposition").state == "transactional rejected:amqp:not-found"
        condition, description, info = error_of(peer.expect("detach"))
        assert (condition, description) == ("amqp:not-found", "q: it is not there; create it, then attach again")
        assert info == {"rule": f"posted.not-found-rejected-{word}"}


def test_what_a_table_refuses_by_itself_says_what_to_do(gateway: ScriptedGateway) -> None:
    with Transacting(gateway.port) as peer:
        peer.consumer("q", credit=1)
        peer.stored("q", frames.message())
        peer.receive(1)
        peer.settle([0], frames.in_transaction(b"unknown", frames.state("accepted")), settled=False)
        condition, description, info = error_of(peer.expect("detach"))
        assert condition == "amqp:transaction:unknown-id"
        assert description == "q: transactional unknown refused; declare a transaction first"
        assert info == {"rule": "settle.transactional-unknown-refused"}
        peer.publisher("q", handle=2)
        peer.publish(b"", handle=2)
        condition, description, info = error_of(peer.expect("disposition"))
        assert (condition, description) == ("amqp:precondition-failed", "q: untransformed rejected; mend the message")


def test_every_condition_that_a_shipped_table_refuses_with_has_its_advice() -> None:
    requests = {"attach", "publish", "coordinate", "settle"}  # the realm is not asked before these
    for profile in PROFILES:
        tables = load_tables(profile=profile)
        for decision in (cell for name in requests for cell in tables[name].cells if cell is not None):
            condition = decision.then["condition"]
            if condition is not None:
                assert shipped_errors().advise(condition), decision
                sentence = describe_error("a-name." * 30, decision)
                assert len(sentence.encode()) <= DESCRIPTION_BYTES_MAX
                assert sentence.endswith(shipped_errors().advise(condition))


WAITING_HELPS = {
    *(f"published.{rule}" for rule in ("capacity-reached-rejected", "capacity-reached-untold")),
    *(f"published.{rule}" for rule in ("not-stored-released", "not-stored-untold")),
    *(f"posted.capacity-reached-{how}" for how in ("rejected-settled", "rejected-waits", "presettled-dooms")),
    "posted.capacity-reached-rejected",
    "attached.unavailable-refused-for-now",
    "committed.failed-rejected",
    "coordinate.declare-when-full-rejected",
}


@pytest.mark.parametrize("profile", PROFILES)
def test_an_error_that_waiting_does_not_mend_gives_no_time_to_wait(profile: str) -> None:
    """Every rule of every table, with every answer that it may meet."""
    tables, hints = load_tables(profile=profile), dict[str, set[bool]]()
    for name in (
        "attach",
        "attached",
        "publish",
        "posted",
        "published",
        "settle",
        "settled",
        "coordinate",
        "committed",
    ):
        table = tables[name]
        for number, decision in enumerate(table.cells):
            if decision is None:
                continue
            answer = table.facts(number).get("answer")
            info = dict(describe_error("q", decision, answer).info)
            hints.setdefault(f"{name}.{decision.rule}", set()).add("retry-after-ms" in info)
    assert {rule for rule, flags in hints.items() if True in flags} <= WAITING_HELPS
    if profile == "extended":
        helped = {rule for rule, flags in hints.items() if True in flags}
        assert {"attached.unavailable-refused-for-now", "published.capacity-reached-rejected"} <= helped
        assert "coordinate.declare-when-full-rejected" in helped
        assert {key for key in shipped_errors().waits or () if "." in key} <= set(hints), "of rules that there are"


def test_a_code_that_is_known_says_whether_waiting_helps() -> None:
    rule = TABLES["published"].decide(
        answer="unavailable", sender_settle_mode="mixed", presettled="no", rejected="agreed", released="agreed"
    )
    assert dict(describe_error("q", rule, "unavailable", "SQLITE_FULL").info)["retry-after-ms"] == 5000
    assert "retry-after-ms" not in dict(describe_error("q", rule, "unavailable", "TOPIC_AUTHORIZATION_FAILED").info)
    assert dict(describe_error("q", rule, "unavailable", "").info)["retry-after-ms"] == 1000


def test_a_sentence_is_no_native_code() -> None:
    rule = TABLES["published"].decide(
        answer="unavailable", sender_settle_mode="mixed", presettled="no", rejected="agreed", released="agreed"
    )
    assert "native-code" not in dict(describe_error("q", rule, "unavailable", "it is full").info)
    assert dict(describe_error("q", rule, "unavailable", "not-granted").info)["native-code"] == "not-granted"


@pytest.mark.parametrize("node", ["q", "a-long-name." * 30, "Größe/" * 40])
def test_a_description_is_short_whatever_the_node_and_the_error(node: str) -> None:
    rule = TABLES["published"].decide(
        **{axis: values[0] for axis, values in TABLES["published"].axes.items()} | {"answer": "unavailable"}
    )
    codes = [code for log in LOGS for code in shipped_errors().codes[log]]
    for native in (*codes, "SQLITE_IOERR_FSYNC", "NO_SUCH_CODE", ""):
        sentence = describe_error(node, rule, "unavailable", native)
        assert len(sentence.encode()) <= DESCRIPTION_BYTES_MAX
        assert sentence.startswith(node[:5]), "it names the node"
        assert not native or ("native-code", native) in sentence.info
