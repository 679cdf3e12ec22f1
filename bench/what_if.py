"""How long it takes to decide recorded deliveries by other tables, after landing.

    python -m bench.what_if [--count 100000000] [--turn 256] [--peers 200] [--record]

Synthetic outcome records, landed as Parquet: turns of `--turn` deliveries in four groups, of ten combinations, on
twenty nodes. They are decided by another profile. Prints seconds and processor seconds of the start of Spark and of the
decision; `--record` writes results/DATE-COMMIT-what-if.json. Required: 100 M deliveries in 30 s.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
from pyspark.sql import SparkSession

from bench.machine import Machine
from bench.report import show
from mappings import Decision, load_tables
from reconciliation.engine import spark
from reconciliation.model.folder import LocalFolder
from reconciliation.model.ranges import Extent
from reconciliation.read.landing import Landed
from reconciliation.read.record_file import Columns, RecordFile
from reconciliation.what_if.expanded_tables import ExpandedTables
from reconciliation.what_if.job import Answer, Question, what_if
from tests.kit.wire.clients import used_s

REQUIRED_S, REQUIRED_COUNT = 30.0, 100_000_000
GROUPS, NODES = 4, 20
TABLES = load_tables()
OTHER = "um-9.12"
_PUBLISH = {"sender_settle_mode": "unsettled", "presettled": "no", "rejected": "agreed", "released": "agreed"}
_WHOLE = {"framing": "whole", "transformed": "event", "transactional": "no"}
_QUEUE = {"subscription": "queue", "source_durability": "none", "receiver_settle_mode": "first"}
_STATES = ("accepted", "accepted", "accepted", "rejected", "released", "modified-failed")
_ANSWERS = ("stored", "stored", "stored", "unavailable")


def combinations() -> Iterator[dict[str, Any]]:
    for answer in _ANSWERS:
        rule = TABLES["publish"].decide(**_WHOLE, **_PUBLISH)
        answered = TABLES["published"].decide(answer=answer, **_PUBLISH)
        yield {
            "direction": "publish",
            "cause": "transfer",
            **_columns(rule, answered, answer, answered.then["outcome"]),
        }
    for state in _STATES:
        rule = TABLES["settle"].decide(state=state, already_settled="no", attempts="below", **_QUEUE)
        answered = TABLES["settled"].decide(operation=rule.then["native"], answer="done", peer_settled="no")
        columns = _columns(rule, answered, "done", rule.then["outcome"])
        yield {"direction": "subscribe", "cause": "disposition", **columns}


def _columns(rule: Decision, answered: Decision, answer: str, outcome: str) -> dict[str, Any]:
    return {
        "table": rule.table, "cell": rule.cell, "rule": rule.rule, "answer_table": answered.table,
        "answer_cell": answered.cell, "answer_rule": answered.rule, "operation": rule.then["native"],
        "answer": answer, "native": None, "outcome": outcome, "condition": answered.then["condition"],
        "class": answered.then["class"], "presettled": 0,
    }  # fmt: skip


def records(count: int, turn: int, peers: int) -> Iterator[bytes]:
    share, kinds = turn // GROUPS, cycle(combinations())
    for number in range(1, count // turn + 1):
        groups = []
        for at, kind in enumerate(islice(kinds, GROUPS)):
            first = (number - 1) * turn + at * share
            peer = (number * GROUPS + at) % peers
            link = {"link": peer, "name": f"link-{peer}", "container": f"app-{peer}", "user": f"user-{peer % 10}"}
            node = {"node": f"orders.{(number + at) % NODES}", "store": 512_905_180_571, "durable": None}
            numbers = [*range(first, first + share)]
            groups.append({**kind, **link, **node, "seq": numbers, "eid": numbers})
        run = {"v": 1, "run": "19aa5b3c1f0-9c2e", "n": number, "at": 1_900_000_000_000_000 + number * 5_000}
        yield orjson.dumps({**run, "digest": TABLES.digest, "profile": "extended", "closed": 0, "groups": groups})


def land(target: Path, values: Iterator[bytes]) -> int:
    """As landing leaves them; how many octets they are."""
    file, total = RecordFile(target, batch_written=lambda: None), 0
    for offset, value in enumerate(values):
        key, held = pa.array([b"run"], pa.binary()), pa.array([value], pa.binary())
        file.add(Columns("um.outcomes", 0, np.zeros(1, np.int64), np.array([offset], np.int64), key, held))
        total += len(value)
    file.close()
    return total


def measured(machine: Machine, landed: Landed, offsets: int, scratch: Path, count: int) -> dict[str, Any]:
    """The session stays, so that `machine` can still ask what it used."""
    began, before = time.monotonic(), time.process_time()
    session = spark.start(scratch, offsets=offsets, jars=[])
    launched: Any = session.sparkContext._gateway
    process = launched.proc.pid
    machine.pids = [process]
    started, cpu = time.monotonic(), used_s(process) + time.process_time() - before
    question = Question(OTHER, ExpandedTables(load_tables(profile=OTHER).expanded()), assumed={"framing": "whole"})
    answer = what_if(session, landed, [TABLES.expanded()], question, lambda _: None)
    ended, all_cpu = time.monotonic(), used_s(process) + time.process_time() - before
    assert answer.deliveries.all == count, answer.deliveries
    return {
        "start_s": round(started - began, 1), "decide_s": round(ended - started, 1), "start_cpu_s": round(cpu, 1),
        "decide_cpu_s": round(all_cpu - cpu, 1), **_counts(answer),
    }  # fmt: skip


def _counts(answer: Answer) -> dict[str, int]:
    totals = answer.deliveries
    return {"alike": totals.alike, "differently": totals.differently, "undecided": totals.undecided}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.what_if", description=__doc__)
    parser.add_argument("--count", type=int, default=REQUIRED_COUNT, help="deliveries")
    parser.add_argument("--turn", type=int, default=256, help="deliveries of one outcome record")
    parser.add_argument("--peers", type=int, default=200)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    started = time.strftime("%Y-%m-%dT%H%M")
    turn = arguments.turn // GROUPS * GROUPS
    count = arguments.count // turn * turn
    with tempfile.TemporaryDirectory(prefix="bench-what-if-") as directory:
        landed = Landed(LocalFolder(Path(directory)), Extent((), ()))
        size = land(Path(directory, "kind=outcomes"), records(count, turn, arguments.peers))
        offsets = count // turn * 100
        machine = Machine([])
        figures = machine.measured(measured, machine, landed, offsets, Path(directory, "scratch"), count)
        SparkSession.active().stop()
    report = {
        "deliveries": count,
        "turn": turn,
        "peers": arguments.peers,
        "json_mb": size // 1_000_000,
        **figures,
    }
    report["required_s"] = REQUIRED_S if count >= REQUIRED_COUNT else None
    show(started, "what-if", report, is_kept=arguments.record)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
