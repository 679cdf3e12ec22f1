"""Tables reloaded over and over while messages flow: a good set, another good one, and bad ones, in turn.

In one process, in front of a realm in memory; `python -m bench.reload` makes the long run on a real gateway. The
evidence is held against what the tables named in each record say: nothing lost, nothing told twice, each delivery
decided by one set.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import orjson

from gateway.reload.tables import TableReload
from mappings import TableSet, load_tables
from mappings.compiler.table_set import SHIPPED
from tests.kit.patience import HANG_S
from tests.kit.rewriting import rewrite
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.scripted_gateway import ScriptedGateway

ACCEPTED = "then: {outcome: accepted, settle: true}"
MODIFIED = "then: {outcome: modified, settle: true}"  # lawful, odd, and seen at once by the one who publishes
BAD = "then: {outcome: accepted, settle: maybe}"
DEADLINE_S = HANG_S  # to be told; a machine that is shared may stop for a while
MESSAGE = frames.message(b"event")


class Folder:
    """A directory of tables in which what is stored is told as accepted, as modified, or not soundly at all."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        shutil.copytree(SHIPPED / "tables", directory / "tables")
        self._path = directory / "tables" / "published.yaml"
        self._text = self._path.read_text(encoding="utf-8")
        assert self._text.count(ACCEPTED) == 1

    def write(self, then: str) -> None:
        rewrite(self._path, self._text.replace(ACCEPTED, then))


@dataclass(slots=True)
class Figures:
    reloads: int
    refused: int
    messages: int
    outcomes: Counter[str]


class Publisher(threading.Thread):
    """Publishes a few at a time and takes what it is told, until it is stopped."""

    def __init__(self, port: int) -> None:
        super().__init__(name="publisher")
        self.told: Counter[str] = Counter()
        self.sent = 0
        self.error: BaseException | None = None
        self._port = port
        self._enough = threading.Event()

    def run(self) -> None:
        try:
            with Peer(self._port) as peer:
                peer.publisher("q")
                while not self._enough.is_set():
                    numbers = peer.publish(*[MESSAGE] * 20)
                    self.sent += len(numbers)
                    time.sleep(0.002)
                    self.told.update(str(state) for state in peer.outcomes(len(numbers), DEADLINE_S).values())
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        self._enough.set()
        self.join(30)
        if self.error is not None:
            raise self.error


def reload_once(gateway: ScriptedGateway) -> None:
    """Ask, and wait until it is active or refused."""
    reload: TableReload = gateway.server.reload
    before = reload.done + reload.refused
    gateway.do(reload.request)
    gateway.until(lambda: reload.done + reload.refused > before, 300.0)


def run(count: int, directory: Path) -> Figures:
    folder = Folder(directory)
    with ScriptedGateway(load_tables(directory), directory=directory) as gateway:
        reload = gateway.server.reload
        publisher = Publisher(gateway.port)
        publisher.start()
        for number in range(count):
            folder.write((MODIFIED, BAD, ACCEPTED, BAD)[number % 4])
            reload_once(gateway)
        publisher.stop()
        gateway.until(lambda: gateway.gateway.outcomes.open == 0)
        gateway.do(lambda: gateway.gateway.outcomes.flush(closed=True))
        assert reload.done + reload.refused == count
        assert sum(publisher.told.values()) == publisher.sent == len(gateway.realm.store("q").values)
        assert gateway.gateway.faults.total() == 0, gateway.gateway.faults
        check_evidence(gateway.realm.evidence, publisher, gateway.tables)
        return Figures(reload.done, reload.refused, publisher.sent, publisher.told)


def check_evidence(evidence: Iterable[bytes], publisher: Publisher, first: TableSet) -> Counter[str]:
    """Every seq has one outcome, and it is what the tables say whose digest its record names; those are `first`,
    or were stored before. How many records each digest has."""
    sets = {first.digest: first}
    seqs, outcomes, records = bytearray(publisher.sent + 1), Counter[str](), Counter[str]()
    low = 0
    for record in map(orjson.loads, evidence):
        if "tables" in record:
            sets.setdefault(record["digest"], TableSet.read(record))
            continue
        assert record["low"] >= low, "an outcome may be missing below the mark"
        low = record["low"]
        tables = sets[record["digest"]]
        records[tables.digest] += 1
        for group in record["groups"]:
            answer = tables["published"].cells[group["answer_cell"]]
            assert answer is not None and answer.rule == group["answer_rule"]
            assert group["outcome"] == answer.then["outcome"], (record["digest"], group)
            for seq in group["seq"]:
                assert not seqs[seq], f"seq {seq} was told twice"
                seqs[seq] = 1
            outcomes[group["outcome"]] += len(group["seq"])
    assert outcomes == publisher.told
    assert seqs.find(0, 1) == -1, f"seq {seqs.find(0, 1)} has no outcome"
    return records
