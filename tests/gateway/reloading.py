"""Tables reloaded over and over while messages flow: a good set, another good one, and bad ones, in turn.

`python -m tests.gateway.reloading --count 10000` is the long run; the suite makes a short one. The evidence is held
against what the tables named in each record say: nothing lost, nothing told twice, each delivery decided by one set.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import orjson

from gateway.reload import Reload
from mappings import TableSet, load_tables
from mappings.table_set import SHIPPED
from tests.wire import frames
from tests.wire.peer import Peer
from tests.wire.tcp_house import TcpHouse

ACCEPTED = "then: {outcome: accepted, settle: true}"
RELEASED = "then: {outcome: released, settle: true}"  # lawful, odd, and seen at once by whoever publishes
BAD = "then: {outcome: accepted, settle: maybe}"
MESSAGE = frames.message(b"event")


class Folder:
    """A directory of tables in which what is stored is told as accepted, as released, or not soundly at all."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        shutil.copytree(SHIPPED / "tables", directory / "tables")
        self._path = directory / "tables" / "published.yaml"
        self._text = self._path.read_text(encoding="utf-8")
        assert self._text.count(ACCEPTED) == 1

    def write(self, then: str) -> None:
        self._path.write_text(self._text.replace(ACCEPTED, then), encoding="utf-8")


@dataclass(slots=True)
class Figures:
    reloads: int
    refused: int
    messages: int
    outcomes: Counter[str]
    seconds: float
    stall_ms: float  # the longest time that a turn of the loop was late, swaps only


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
                    self.told.update(str(state) for state in peer.outcomes(len(numbers)).values())
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        self._enough.set()
        self.join(30)
        if self.error is not None:
            raise self.error


def reload_once(house: TcpHouse) -> None:
    """Ask, and wait until it is in force or refused."""
    reload: Reload = house.server.reload
    before = reload.done + reload.refused
    house.do(reload.request)
    house.until(lambda: reload.done + reload.refused > before, 300.0)


def run(count: int, directory: Path) -> Figures:
    folder = Folder(directory)
    stalls = [0.0]
    with TcpHouse(load_tables(directory), directory=directory) as house:
        reload = house.server.reload
        _time_swaps(house, stalls)
        publisher = Publisher(house.port)
        publisher.start()
        begin = time.monotonic()
        for number in range(count):
            folder.write((RELEASED, BAD, ACCEPTED, BAD)[number % 4])
            reload_once(house)
        seconds = time.monotonic() - begin
        publisher.stop()
        house.until(lambda: house.gateway.outcomes.open == 0)
        house.do(lambda: house.gateway.outcomes.flush(closed=True))
        assert reload.done + reload.refused == count
        assert sum(publisher.told.values()) == publisher.sent == len(house.realm.store("q").values)
        assert house.gateway.faults.total() == 0, house.gateway.faults
        check_evidence(house, publisher)
        return Figures(reload.done, reload.refused, publisher.sent, publisher.told, seconds, max(stalls) * 1000)


def _time_swaps(house: TcpHouse, stalls: list[float]) -> None:
    use = house.gateway.use

    def timed(tables: TableSet) -> None:
        begin = time.perf_counter()
        use(tables)
        stalls.append(time.perf_counter() - begin)

    house.gateway.use = timed  # type: ignore[method-assign]


def check_evidence(house: TcpHouse, publisher: Publisher) -> None:
    """Every seq has one outcome, and it is what the tables say whose digest its record names."""
    stored = [orjson.loads(value) for value in house.realm.evidence]
    sets = {record["digest"]: TableSet.read(record) for record in stored if "tables" in record}
    seqs: Counter[int] = Counter()
    told: Counter[str] = Counter()
    low = 0
    for record in stored:
        if "groups" not in record:
            continue
        assert record["low"] >= low, "an outcome may be missing below the mark"
        low = record["low"]
        tables = sets.get(record["digest"], house.tables)
        assert tables.digest == record["digest"]
        for group in record["groups"]:
            answer = tables["published"].cells[group["answer_cell"]]
            assert answer is not None and answer.rule == group["answer_rule"]
            assert group["outcome"] == answer.then["outcome"], (record["digest"], group)
            seqs.update(group["seq"])
            told[group["outcome"]] += len(group["seq"])
    assert told == publisher.told
    assert set(seqs.values()) <= {1}
    assert sorted(seqs) == list(range(1, publisher.sent + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    count = parser.parse_args().count
    with tempfile.TemporaryDirectory() as directory:
        figures = run(count, Path(directory) / "tables-of-ours")
    outcomes = ", ".join(f"{number} {outcome}" for outcome, number in sorted(figures.outcomes.items()))
    sys.stdout.write(
        f"{count} reloads in {figures.seconds:.0f} s: {figures.reloads} in force, {figures.refused} refused; meanwhile "
        f"{figures.messages} messages, each told once ({outcomes}), 0 lost; longest swap {figures.stall_ms:.1f} ms\n"
    )


if __name__ == "__main__":
    main()
