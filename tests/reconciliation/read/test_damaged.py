"""Records of which one octet is another one, and which are JSON still: no reconciliation ends by them. What they do not
say any more is missing evidence, in rows and in sums."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from native_backend.log.open import open_embedded
from native_backend.log.port import TopicSpec
from reconciliation.model.settings import Realm
from tests.reconciliation.conftest import Reconcile, Result
from tests.reconciliation.days import said
from tests.reconciliation.world import TABLES, GatewayRun, World

NO_RUN = "19aa5b3c1g0-9c2e"
TAKE = {"v": 1, "what": "take", "term": 1, "run": "19aa5b3c1f0-9c2e", "at": 1, "process": {"pid": 1 << 62, "start": 1}}
Record = dict[str, Any]


def damaged(record: Record) -> Iterator[Record]:
    """Each with the last octet of one name changed."""
    for flipped in record:
        yield {f"{name[:-1]}\u007f" if name == flipped else name: value for name, value in record.items()}


def judged(directory: Path, reconcile: Reconcile, plant: Callable[[World], None]) -> Result:
    """By rows, and the same by sums."""
    realm = Realm("embedded", "um", path=directory / "realm")
    log = open_embedded(directory / "realm")
    try:
        world = World(log, "um")
        log.control.create_topics([TopicSpec("um.lease")])
        orders, run = world.queue("orders"), world.run()
        run.settle(orders, run.publish(orders, 4)[:3], "accepted")
        plant(world)
        run.close()
    finally:
        log.close()
    result = reconcile(realm)
    assert said(reconcile(realm, state=directory / "state", sums=True)) == said(result)
    return result


def details(result: Result) -> list[str]:
    return sorted(str(row["detail"]) for row in result.rows() if row["class"] == "Q1")


@pytest.mark.parametrize("source", ["outcomes", "journal"])
def test_a_run_of_which_an_octet_is_another_one(tmp_path: Path, reconcile: Reconcile, source: str) -> None:
    def plant(world: World) -> None:
        record: Record = {"v": 1, "run": NO_RUN, "n": 1, "at": 1, "low": 1, "next": 1, "groups": [], "entries": []}
        world.append(f"um.{source}", [b"x"], [json.dumps(record).encode()])

    result = judged(tmp_path, reconcile, plant)
    assert (result.code, details(result)) == (1, [f"1 {source} records cannot be read"])


def test_a_lease_that_names_no_run(tmp_path: Path, reconcile: Reconcile) -> None:
    """The lease says which runs live."""

    def plant(world: World) -> None:
        for record in (TAKE, {name: value for name, value in TAKE.items() if name != "run"}):
            world.append("um.lease", [b"x"], [json.dumps(record).encode()])

    result = judged(tmp_path, reconcile, plant)
    assert (result.code, details(result)) == (1, ["lease record at offset 2: it has no run"])


def test_any_name_of_which_an_octet_is_another_one(tmp_path: Path, reconcile: Reconcile) -> None:
    """Nothing ends, whatever is missing: each name of each record of a gateway and of what the realm keeps."""

    def plant(world: World) -> None:
        _plant_evidence(world)
        _plant_state(world)

    result = judged(tmp_path, reconcile, plant)
    missing = details(result)
    assert result.code == 1
    for words in ("outcomes records cannot be read", "journal records cannot be read", "it has no digest",
                  "it has no journal", "it has no low", "it has no acked", "it has no tables", "it has no run",
                  "it has no store", "it has no start"):  # fmt: skip
        assert any(words in detail for detail in missing), (words, missing)


def _plant_evidence(world: World) -> None:
    """Of a run each time, as what one record lacks is no reason for another one."""
    node = world.queue("damaged")
    names = len([*damaged(_outcome(world.run(), node))])
    for at in range(names + 40):
        run = world.run()
        record = _outcome(run, node)
        [group] = record["groups"]
        more = [{**record, "groups": [part]} for part in damaged(group)]
        variants = [*damaged(record), *more]
        if at < len(variants):
            world.append("um.outcomes", [run.name.encode()], [json.dumps(variants[at]).encode()])
    for at in range(20):
        run = world.run()
        [sent] = run.publish(node, 1)
        run.turn()
        entry: Record = {"node": node.name, "durable": "queue", "store": node.store, "operation": "acknowledge",
                         "failed": 0, "cause": "disposition", "runs": [[sent.eid, sent.eid, 2, sent.eid]]}  # fmt: skip
        journal: Record = {"v": 1, "run": run.name, "n": 2, "at": world.clock.epoch_us(), "entries": [entry]}
        variants = [*damaged(journal), *({**journal, "entries": [part]} for part in damaged(entry))]
        if at < len(variants):
            world.commit(run.name, variants[at])


def _outcome(run: GatewayRun, node: Any) -> Record:
    """What the run would write of one publish."""
    run.publish(node, 1)
    groups, run.groups = run.groups, []
    return {
        "v": 1, "run": run.name, "n": 2, "at": run.world.clock.epoch_us(), "low": 2, "next": 2, "digest": TABLES.digest,
        "profile": "extended", "closed": 0, "groups": groups,
    }  # fmt: skip


def _plant_state(world: World) -> None:
    """Each under a key of its own."""
    put = world.log.control.put
    snapshot: Record = {"v": 1, "node": "n", "durable": "d", "store": 7, "journal": 1, "low": 1, "acked": [[1, 2]],
                        "failed": []}  # fmt: skip
    document = {**TABLES.expanded(), "stored_us": 1}
    [(name, table), *_] = document["tables"].items()
    tables = [*damaged(document), *({**document, "tables": {name: part}} for part in damaged(table))]
    node: Record = {"v": 2, "name": "n", "kind": "queue", "topic": "um.node.n", "topic_id": "00" * 16, "store": 7,
                    "created_us": 1, "changed_us": 1, "adopted": 0, "properties": {"ttl_ms": "1"}}  # fmt: skip
    durable: Record = {"v": 2, "node": "n", "name": "d", "store": 7, "group": "g", "start": 0, "journal": 0,
                       "created_us": 1, "terms": {}}  # fmt: skip
    command: Record = {"v": 2, "at": 1, "id": "d1", "what": "purge", "node": "orders", "eid": "1"}
    for kind, records in (
        ("state", [*damaged(snapshot), {**snapshot, "acked": [[1]]}, {**snapshot, "low": "1"}]),
        ("tables", tables),
        ("realm", [*damaged(node), node, *damaged(durable), {**durable, "terms": None}]),
        ("lease", [*damaged(TAKE), {**TAKE, "process": 7}]),
        ("commands", [*damaged(command), command]),
    ):
        for at, record in enumerate(records):
            key = json.dumps(
                [at, "d"] if kind == "state" else ["node" if "kind" in record else "durable", f"n{at}", "d"]
            )
            put(f"um.{kind}", key.encode(), json.dumps(record).encode())
