"""What a reconciliation costs that continues from the last one's state, beside one over everything.

    python -m bench.increments [--outcomes 1000000] [--days 14] [--record]

A realm of this machine, written through the log port: each day a gateway run of `--outcomes` deliveries in turns of
256, on twenty queues; one event of a thousand stays in its queue until the next day. Measured are, each as a process of
its own: one day alone; `--days` days at once; the day after, continued; both again with `--sums` and a state of their
own; and all of it without a state. Seconds and processor seconds of the command with its JVM. `--record` writes
results/DATE-COMMIT-increments.json. Required: the day after costs at most 1.5 times one day alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from bench.report import show
from mappings import Decision, load_tables
from native_backend.log.open import open_embedded
from native_backend.log.port import Append, Appended, Log, TopicSpec, Transacted, Write
from native_backend.nodes.admin import create_node
from native_backend.nodes.node import Node
from tests.kit.wire.clients import used_s

TURN, NODES, LEFT = 256, 20, 1000
REQUIRED = 1.5
_LOOK_S = 0.2
SHARD = "um.shard.0"
START_US, DAY_MS = 1_900_000_000_000_000, 86_400_000
"""Later than the log's own time, which is the machine's."""
TABLES = load_tables(profile="extended")
_LINK = {"link": 1, "name": "link-1", "container": "app-1", "durable": None, "native": None, "presettled": 0}
_LISTED = {"rejected": "agreed", "released": "agreed"}
_PUBLISH = TABLES["publish"].decide(framing="whole", transformed="event", transactional="no",
                                    sender_settle_mode="unsettled", presettled="no", **_LISTED)  # fmt: skip
_STORED = TABLES["published"].decide(answer="stored", sender_settle_mode="unsettled", presettled="no", **_LISTED)
_SETTLE = TABLES["settle"].decide(state="accepted", already_settled="no", subscription="queue",
                                  source_durability="none", receiver_settle_mode="first", attempts="below")  # fmt: skip
_DONE = TABLES["settled"].decide(operation=_SETTLE.then["native"], answer="done", peer_settled="no")


def _group(rule: Decision, answered: Decision, **more: str) -> dict[str, Any]:
    return {
        **_LINK, "table": rule.table, "cell": rule.cell, "rule": rule.rule, "answer_table": answered.table,
        "answer_cell": answered.cell, "answer_rule": answered.rule, "operation": rule.then["native"],
        "outcome": "accepted", "condition": answered.then["condition"], "class": answered.then["class"], **more,
    }  # fmt: skip


PUBLISHED = _group(_PUBLISH, _STORED, direction="publish", cause="transfer", answer="stored")
TOLD = _group(_SETTLE, _DONE, direction="subscribe", cause="disposition", answer="done")
ENDED = {"durable": "queue", "operation": "acknowledge", "failed": 0, "cause": "disposition"}
NOTE = {"node": "", "durable": "", "store": 0, "operation": "recorded", "failed": 0, "cause": "outcomes"}


class Clock:
    def monotonic_s(self) -> float:
        return START_US / 1e6

    def epoch_us(self) -> int:
        return START_US


class Run:
    """One life of a gateway; nothing is in flight when a turn ends."""

    def __init__(self, log: Log, name: str) -> None:
        self._log, self._name, self._seq, self._notes, self.records = log, name, 1, 0, 0
        self._at = int(name.partition("-")[0], 16) * 1000
        self._groups: list[dict[str, Any]] = []
        self._ready = threading.Event()
        log.on_ready(self._ready.set)
        self.note([])
        self.turn()

    def publish(self, node: Node, count: int) -> list[int]:
        """Their EIDs."""
        seqs = self._numbers(count)
        keys = [f"1;basic;{self._name};{seq};1;4;;0;;0".encode() for seq in seqs]
        eids = self._append(node.topic, keys, [b"body"] * count)
        self._groups.append({**PUBLISHED, "node": node.name, "store": node.store, "seq": seqs, "eid": eids})
        return eids

    def acknowledge(self, node: Node, eids: list[int]) -> None:
        """What follows each other is one range in the journal."""
        seqs, ranges = self._numbers(len(eids)), []
        for _, group in groupby(zip(eids, seqs, strict=True), lambda pair: pair[0] - pair[1]):
            pairs = [*group]
            ranges.append([pairs[0][0], pairs[-1][0], pairs[0][1], pairs[0][0]])
        self.note([{**ENDED, "node": node.name, "store": node.store, "runs": ranges}])
        self._groups.append({**TOLD, "node": node.name, "store": node.store, "seq": seqs, "eid": eids})

    def note(self, entries: list[dict[str, Any]]) -> None:
        self._notes += 1
        value = {"v": 1, "run": self._name, "n": self._notes, "at": self._tick(), "entries": entries}
        self._log.transact(SHARD, [Write("um.journal", 0, self._name.encode(), orjson.dumps(value))], None)
        self._done()

    def turn(self, closed: int = 0) -> None:
        self.records += 1
        value = {"v": 1, "run": self._name, "n": self.records, "at": self._tick(), "low": self._seq, "next": self._seq,
                 "digest": TABLES.digest, "profile": "extended", "closed": closed, "groups": self._groups}  # fmt: skip
        self._append("um.outcomes", [self._name.encode()], [orjson.dumps(value)])
        self._groups = []

    def _numbers(self, count: int) -> list[int]:
        first, self._seq = self._seq, self._seq + count
        return list(range(first, self._seq))

    def _tick(self) -> int:
        self._at += 1000
        return self._at

    def _append(self, topic: str, keys: list[bytes], values: list[bytes]) -> list[int]:
        self._log.append(Append(topic, 0, keys, values))
        return self._done()

    def _done(self) -> list[int]:
        while True:
            self._ready.wait()
            self._ready.clear()
            for done in self._log.poll():
                assert isinstance(done, Appended | Transacted) and done.failure is None, done
                return list(done.offsets)


class Realm:
    """Days of it, one after another, as a gateway would have recorded them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        (directory / "realmgate.yaml").write_text("realm: {kind: embedded, path: realm}\n")
        self._log = open_embedded(directory / "realm")
        topics = [TopicSpec(f"um.{name}") for name in ("journal", "outcomes")]
        topics += [TopicSpec(f"um.{name}", compacted=True) for name in ("realm", "state", "tables")]
        self._log.control.create_topics(topics)
        self._log.control.claim(SHARD)
        document = {**TABLES.expanded(), "stored_us": START_US}
        self._log.control.put("um.tables", TABLES.digest.encode(), json.dumps(document).encode())
        clock = Clock()
        self._nodes = [create_node(self._log, "um", f"orders-{number}", "queue", clock) for number in range(NODES)]
        self._left: dict[str, list[int]] = {node.name: [] for node in self._nodes}
        self._runs = 0

    def close(self) -> None:
        self._log.close()

    def add_day(self, outcomes: int) -> None:
        self._runs += 1
        run = Run(self._log, f"{START_US // 1000 + self._runs * DAY_MS:x}-{self._runs:04x}")
        for number in range(outcomes // TURN):
            node = self._nodes[number % NODES]
            due, self._left[node.name] = [*self._left[node.name], *run.publish(node, TURN // 2)], []
            if number % (LEFT // TURN * 2) < 2:
                self._left[node.name] = [due.pop()]
            run.acknowledge(node, due)
            run.turn()
        run.turn(closed=1)
        run.note([{**NOTE, "runs": [[1, run.records, 0, 1]]}])

    def reconciled(self, out: str, state: str = "", *, sums: bool = False) -> dict[str, float | str]:
        """Seconds, processor seconds, the verdict, and how it was judged."""
        more = ["--state", str(self.directory / state)] if state else []
        more += ["--sums" if sums else "--no-sums"] if state else []
        done = Reconciliation(self.directory, out, *more)
        steps = [line for line in done.lines if " of 6  " in line or line.endswith("done")]
        sys.stderr.write("\n".join([out, *steps, ""]))
        figures: dict[str, float | str] = {
            "s": round(done.s, 1),
            "cpu_s": round(done.cpu_s, 1),
            "verdict": done.verdict,
        }
        return figures | ({"judged": done.output[done.output.index("Judged from") :].splitlines()[0]} if sums else {})

    def octets(self, state: str) -> int:
        return sum(file.stat().st_size for file in (self.directory / state / "links").rglob("*.parquet"))


class Reconciliation:
    """Of the realm of a directory, as a process of its own, to its end. `lines`: what it wrote on stderr; `heard` is
    called with each of them and the processor seconds until then."""

    def __init__(
        self, directory: Path, out: str, *more: str, heard: Callable[[str, float], object] = lambda *_: None
    ) -> None:
        self._used: dict[int, float] = {}
        self.lines: list[str] = []
        config = str(directory / "realmgate.yaml")
        command = [sys.executable, "-m", "reconciliation", "--config", config, "--out", str(directory / out), *more]
        began = time.monotonic()
        with (
            tempfile.TemporaryFile("w+") as printed,
            subprocess.Popen(command, stdout=printed, stderr=subprocess.PIPE, text=True) as process,
        ):
            assert process.stderr is not None
            watch = threading.Thread(target=self._watch, args=(process,))
            watch.start()
            for line in process.stderr:
                self.lines.append(line.rstrip())
                heard(line, self.cpu_s)
            process.wait()
            self.s = time.monotonic() - began
            watch.join()
            printed.seek(0)
            self.output = printed.read()
        assert process.returncode == 0, "\n".join([self.output, *self.lines])
        self.verdict: str = json.loads((directory / out / "manifest.json").read_bytes())["verdict"]

    @property
    def cpu_s(self) -> float:
        """Of the process and of its JVM, which no parent waits for."""
        return sum([*self._used.values()])

    def _watch(self, process: subprocess.Popen[str]) -> None:
        while process.poll() is None:
            tree = {process.pid}
            for _ in range(3):
                tree |= {int(child) for pid in tree for child in _children(pid)}
            for pid in tree:
                self._used[pid] = max(self._used.get(pid, 0.0), used_s(pid))
            time.sleep(_LOOK_S)


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def measured(directory: Path, outcomes: int, days: int) -> dict[str, Any]:
    with closing(Realm(directory / "one")) as realm:
        realm.add_day(outcomes)
        costs = {"one_day": realm.reconciled("out", "state"), "one_day_sums": realm.reconciled("sums", "s", sums=True)}
    with closing(Realm(directory / "many")) as realm:
        for _ in range(days):
            realm.add_day(outcomes)
        costs |= {"days": realm.reconciled("first", "state"), "days_sums": realm.reconciled("sums", "s", sums=True)}
        realm.add_day(outcomes)
        costs["day_after"] = realm.reconciled("after", "state")
        costs["day_after_sums"] = realm.reconciled("after-sums", "s", sums=True)
        costs["without_state"] = realm.reconciled("whole")
        octets = realm.octets("state") / (outcomes * (days + 1))
    day = float(costs["one_day"]["cpu_s"])
    ratios = {f"{name}_of_one_day": round(float(costs[name]["cpu_s"]) / day, 2) for name in costs if "after" in name}
    return {**costs, **ratios, "required": REQUIRED, "octets_an_outcome": round(octets, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.increments", description=__doc__)
    parser.add_argument("--outcomes", type=int, default=1_000_000, help="of a day")
    parser.add_argument("--days", type=int, default=14, help="before the day that is continued")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    started = time.strftime("%Y-%m-%dT%H%M")
    with tempfile.TemporaryDirectory(prefix="bench-increments-") as directory:
        figures = measured(Path(directory), arguments.outcomes, arguments.days)
    report = {"outcomes_a_day": arguments.outcomes, "days": arguments.days, **figures}
    show(started, "increments", report, is_kept=arguments.record)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
