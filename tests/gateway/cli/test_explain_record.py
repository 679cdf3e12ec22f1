"""`explain --record`: a delivery of a real gateway, decided again from its log."""

from __future__ import annotations

import io
import json
import shutil
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

from kafka import KafkaConsumer, TopicPartition

from gateway.cli.explain_record import decide_again
from mappings import load_tables
from mappings.compiler.table_set import SHIPPED
from native_backend.log.open import open_embedded
from tests.kit.processes.explain_record import replay
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.tables.overriding import classify, override
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer


def test_a_recorded_delivery_is_decided_again(new_gateway: StartGateway, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    shutil.copytree(SHIPPED / "tables", ours / "tables")
    process = new_gateway("embedded", mappings={"dir": str(ours)})
    with Peer(process.port) as peer:
        peer.publisher("q")
        peer.publish(frames.message(), b"")
        assert set(peer.outcomes(2).values()) == {"accepted", "rejected:amqp:precondition-failed"}
    process.stop()
    run = _run_of(process)
    code, output = replay(process, f"{run}:1")
    assert code == 0, output
    assert f"delivery 1 of run {run}: publish q, eid " in output
    assert "rule publish-mixed (" in output and "rule stored-accepted (" in output
    assert output.count("as recorded") == 2
    assert "because  The event is stored, and only now may the publisher forget it." in output
    code, output = replay(process, f"{run}:2")
    assert (code, "rule untransformed-rejected (" in output) == (0, True), output
    path = ours / "tables" / "published.yaml"
    path.write_text(path.read_text().replace("{outcome: accepted, settle: true}", "{outcome: modified, settle: true}"))
    code, output = replay(process, f"{run}:1")
    assert code == 0, "the tables of that time decide, not today's"
    assert "rule stored-accepted\n  then     outcome=accepted settle=true" in output
    assert "because  The event is stored, and only now may the publisher forget it." in output, "and why they did"
    steps = json.loads(process.command("trace", f"{run}:1", "--json"))["messages"][0]["life"]
    [rule] = next(step for step in steps if step["what"] == "answered")["rules"]
    assert rule["because"].startswith("The event is stored,") and rule["place"] is None
    assert replay(process, f"{run}:99") == (1, f"no outcome of delivery 99 of run {run} is kept\n")
    assert replay(process, "nothing")[0] == 1


def test_a_delivery_of_a_kafka_realm_is_decided_again(new_gateway: StartGateway) -> None:
    """A settlement: its record is found among those of other deliveries."""
    process = new_gateway("kafka")
    with Peer(process.port) as peer:
        peer.stored("q", frames.message(), frames.message(), frames.message())
        peer.consumer("q", credit=3)
        peer.receive(3)
        peer.settle([0, 2], frames.state("released"), settled=False)
        assert set(peer.outcomes(2).values()) == {"released"}
    process.stop()
    code, output = replay(process, f"{_run_on_kafka(process)}:4")
    assert code == 0, output
    assert "subscribe q, eid " in output and "told     released" in output
    assert "rule released-returns (" in output and "rule done-as-asked (" in output
    assert "because  The event is available again, unchanged and uncounted." in output


def test_a_replay_says_of_which_class_the_node_is(new_gateway: StartGateway, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    shutil.copytree(SHIPPED / "tables", ours / "tables")
    classify(ours, "orders.bulk.*")
    override(ours, "published", "stored-accepted", outcome="modified")
    process = new_gateway("embedded", mappings={"dir": str(ours)})
    with Peer(process.port) as peer:
        peer.publisher("orders.bulk.7")
        peer.publish(frames.message())
        assert set(peer.outcomes(1).values()) == {"modified"}
    process.stop()
    code, output = replay(process, f"{_run_of(process)}:1")
    assert code == 0, output
    assert "node_class=bulk answer=stored" in output and "rule stored-accepted-bulk (" in output


def test_a_cell_of_another_class_than_the_nodes_is_reported(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "tables", tmp_path / "tables")
    classify(tmp_path, "orders.bulk.*")
    override(tmp_path, "published", "stored-accepted", outcome="modified")
    tables = load_tables(tmp_path)
    decision = tables.for_class("default")["published"].decide(
        answer="stored", sender_settle_mode="mixed", presettled="no", rejected="agreed", released="agreed"
    )
    group = {"table": "published", "cell": decision.cell, "rule": decision.rule, "node": "orders.bulk.7"}
    settings = SimpleNamespace(mappings=SimpleNamespace(directory=tmp_path))
    out = io.StringIO()
    assert not decide_again(tables, group, "", settings, out)  # type: ignore[arg-type]
    assert "class    bulk, but the record says default\n" in out.getvalue()
    assert decide_again(tables, {**group, "node": "orders.7"}, "", settings, out)  # type: ignore[arg-type]


def _run_on_kafka(process: GatewayProcess) -> str:
    realm = process.settings["realm"]
    place = TopicPartition(f"{realm['prefix']}.outcomes", 0)
    with closing(KafkaConsumer(bootstrap_servers=realm["bootstrap"], isolation_level="read_committed")) as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        return str(json.loads(next(consumer).value)["run"])


def _run_of(process: GatewayProcess) -> str:
    with closing(open_embedded(Path(process.settings["realm"]["path"]))) as log:
        records = log.control.read_range("um.outcomes", 0, 0, 1)
    assert records.values[0] is not None
    return str(json.loads(records.values[0])["run"])
