"""One reconciliation after another in one process: what each leaves, and what becomes of one that cannot run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from reconciliation.cli.acknowledge import read_acknowledged
from reconciliation.cli.judging import Earlier, Task
from reconciliation.cli.rounds import Rounds, Stopped
from reconciliation.history import kept
from reconciliation.model.folder import LocalFolder
from reconciliation.model.settings import SettingsError
from reconciliation.model.window import Window
from tests.reconciliation import planting
from tests.reconciliation.days import Days
from tests.reconciliation.world import START_US, Sent


class Played:
    """`between`: what happens to the realm, or is looked at, between two rounds; then it is stopped."""

    def __init__(self, session: SparkSession, days: Days, out: Path, between: list[Callable[[], object]]) -> None:
        self.said, self.out, self._left = list[str](), LocalFolder(out), between
        task = Task(session, days.realm, Window(), self.out, LocalFolder(days.state), repeated=True)
        self.earlier: Callable[[], Earlier] = lambda: Earlier(None, True, read_acknowledged(None, self.out))
        times = count(START_US, 60_000_000)
        self.rounds = Rounds(task, 60.0, lambda: self.earlier(), self.said.append, lambda: next(times), self._wait)

    def _wait(self, seconds: float) -> None:
        assert 0.0 <= seconds <= 60.0
        if not self._left:
            self.rounds.stop()
        self._left.pop(0)()

    @property
    def verdict(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.out.path / "verdict.json").read_text())
        return content

    def metric(self, name: str) -> dict[str, float]:
        lines = (self.out.path / "verdict.prom").read_text().splitlines()
        return {line.split(" ")[0]: float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"{name}{{")}


def test_each_round_says_what_is_now(session: SparkSession, tmp_path: Path) -> None:
    days = Days(tmp_path, None, session)
    days.add(1)
    hidden, out, sent = tmp_path / "hidden", tmp_path / "out", list[Sent]()

    def clean() -> None:
        assert (played.verdict["verdict"], played.verdict["every_s"]) == ("clean", 60.0)
        assert played.metric("realmgate_verdict")['realmgate_verdict{realm="um",verdict="clean"}'] == 1
        days.add(1)

    def still_clean() -> None:
        assert (played.verdict["verdict"], len(kept.read(out_history).names)) == ("clean", 1), "nothing is new"
        days.add(1, lambda world, run, orders: sent.extend(run.publish(orders, 3)))
        planting.delete(days.directory / "realm", days.topic, sent[1].eid)

    def lost() -> None:
        assert (played.verdict["verdict"], played.verdict["open"]) == ("not clean", 1)
        [(labels, count)] = played.metric("realmgate_verdict_open_messages").items()
        assert (labels, count) == ('realmgate_verdict_open_messages{realm="um",class="P1"}', 1)
        assert ": 1 new, 0 grown" in played.said[-1] and (out / "manifest.json").exists()
        (days.directory / "realm").rename(hidden)

    def gone() -> None:
        failed = played.verdict["failed"]
        assert failed["rounds"] == 1 and str(days.directory / "realm") in failed["why"]
        assert (played.verdict["verdict"], played.rounds.latest().failed is None) == ("not clean", False)
        assert (out / "manifest.json").exists(), "the report of the latest verdict stays"

    def gone_still() -> None:
        [failed] = played.metric("realmgate_verdict_failed_rounds").values()
        assert failed == 2 and re.search(r"round 5 could not run, 2 in a row: ", played.said[-1])
        hidden.rename(days.directory / "realm")

    def back() -> None:
        assert "failed" not in played.verdict and [*played.metric("realmgate_verdict_failed_rounds").values()] == [0]
        assert len(kept.read(out_history).names) == 2, "the same finding is no news"
        assert played.said[-1].startswith(played.verdict["at"]) and "round 6" in played.said[-1]
        (out / "acknowledged.yaml").write_text("acknowledged: 7\n")

    def damaged() -> None:
        assert played.rounds.latest().failed is not None and "acknowledged.yaml" in played.said[-1]
        (out / "acknowledged.yaml").unlink()

    out_history = LocalFolder(out / "history")
    played = Played(session, days, out, [clean, still_clean, lost, gone, gone_still, back, damaged])
    with pytest.raises(Stopped):
        played.rounds.go_on()
    assert "failed" not in played.verdict
    assert session.sparkContext._jsc is not None
    assert not session.sparkContext._jsc.getPersistentRDDs(), "what a round keeps in memory is forgotten"


def test_a_round_that_fails_as_no_one_foresaw_is_a_failed_round(
    session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is ours to mend, so its traceback is written. The next round goes on."""
    days = Days(tmp_path, None, session)
    days.add(1)

    def damaged() -> Earlier:
        raise KeyError("run")

    def without_words() -> Earlier:
        raise AssertionError

    def begin() -> None:
        assert "failed" not in played.verdict
        played.earlier = damaged

    def failed() -> None:
        assert (played.verdict["verdict"], played.verdict["failed"]["rounds"]) == ("clean", 1)
        assert played.verdict["failed"]["why"] == "KeyError: 'run'"
        assert [*played.metric("realmgate_verdict_failed_rounds").values()] == [1]
        assert "round 2 could not run, 1 in a row: KeyError: 'run'" in played.said[-1]
        assert re.search(r"Traceback.*in damaged.*KeyError: 'run'", capsys.readouterr().err, re.DOTALL)
        played.earlier = without_words

    def failed_again() -> None:
        assert (played.verdict["failed"]["rounds"], played.verdict["failed"]["why"]) == (2, "AssertionError")
        played.earlier = Earlier

    played = Played(session, days, tmp_path / "out", [begin, failed, failed_again])
    with pytest.raises(Stopped):
        played.rounds.go_on()
    assert "failed" not in played.verdict and "round 4" in played.said[-1]


def test_settings_that_make_no_sense_end_the_first_round(session: SparkSession, tmp_path: Path) -> None:
    days = Days(tmp_path, None, session)
    days.add(1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "acknowledged.yaml").write_text("acknowledged: 7\n")
    with pytest.raises(SettingsError):
        Played(session, days, tmp_path / "out", []).rounds.go_on()


def test_the_end_of_spark_is_the_end(tmp_path: Path) -> None:
    """What no later round could do better is no failed round."""

    class Gone:
        @property
        def sparkContext(self) -> object:  # its name there
            raise ConnectionRefusedError("no JVM")

    days = Days(tmp_path, None, None)
    days.add(1)
    with pytest.raises(ConnectionRefusedError, match="no JVM"):
        Played(Gone(), days, tmp_path / "out", []).rounds.go_on()  # type: ignore[arg-type]
    assert not (tmp_path / "out" / "verdict.json").exists()


def test_what_breaks_when_it_is_stopped_is_no_failed_round(session: SparkSession, tmp_path: Path) -> None:
    """A signal comes in the middle of a round, and what the round leaves behind on its way out fails."""
    days = Days(tmp_path, None, session)
    days.add(1)

    def stopped() -> Earlier:
        try:
            played.rounds.stop()
        finally:
            raise OSError("the disk went first")

    played = Played(session, days, tmp_path / "out", [])
    played.earlier = stopped
    with pytest.raises(Stopped):
        played.rounds.go_on()
    assert not played.said
