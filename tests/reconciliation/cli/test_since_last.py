"""Three reconciliations of one realm: what the second and third have that the one before had not, and what is
acknowledged, by the command's exit code."""

from __future__ import annotations

import io
import json
from contextlib import closing
from pathlib import Path

from pyspark.sql import SparkSession

from native_backend.log.open import open_embedded
from reconciliation.cli import main as commands
from reconciliation.cli.acknowledge import read_acknowledged
from reconciliation.cli.judging import Earlier, Task
from reconciliation.history import kept
from reconciliation.model.folder import LocalFolder
from reconciliation.model.settings import Realm
from reconciliation.model.window import Window
from reconciliation.read import landing
from tests.reconciliation import planting
from tests.reconciliation.world import World


def known(out: Path, finding: str) -> None:
    """It is acknowledged by the command."""
    options = ("--until", "2099-12-31", "--by", "ann", "--reason", "INC-4711", "--out", str(out))
    assert commands.main(["--acknowledge", finding, *options], io.StringIO()) == 0


def test_only_what_is_new_is_named(session: SparkSession, tmp_path: Path) -> None:
    realm, out = Realm("embedded", "um", path=tmp_path / "realm"), LocalFolder(tmp_path / "out")
    assert realm.path is not None
    with closing(open_embedded(realm.path)) as log:
        world = World(log, "um")
        orders = world.queue("orders")
        run = world.run()
        sent = run.publish(orders, 5)
        run.close()

    def again() -> tuple[int, str]:
        """By the command, but for its session. What was landed is read again: the ends of topics tell of no loss."""
        out.remove("landed")
        text, entries = io.StringIO(), read_acknowledged(None, out)
        extent = landing.extent_of(realm)
        code = commands.run(Task(session, realm, Window(), out), extent, text, Earlier(None, True, entries))
        session.catalog.clearCache()
        return code, text.getvalue()

    def lose(index: int) -> None:
        assert realm.path is not None
        planting.delete(realm.path, orders.topic, sent[index].eid)

    lose(3)
    code, output = again()
    assert code == 1 and "1 finding new." in output
    known(tmp_path / "out", kept.read(out / "history").records[-1].findings[0].id)
    code, output = again()
    assert code == 0 and output.startswith("Verdict: CLEAN BUT FOR 1 ACKNOWLEDGED.") and "by ann, until 2099-" in output
    assert "1 finding the same as before: 1 message, not named here." in output
    assert "Exit code 0: nothing is new since the reconciliation before; the verdict is clean but for 1" in output
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["verdict"], manifest["clean"]) == ("clean but for acknowledged", False)
    assert manifest["classes"][0]["acknowledged"] == manifest["acknowledged"]["messages"] == 1
    lose(1)
    code, output = again()
    assert code == 1 and "1 \u00d7 lost write (P1). Besides, 1 is acknowledged." in output
    assert "grown  P1-" in output and "2 messages: answered stored" in output and "1 more than before" in output
    assert "It has grown: 1 of 2 are not acknowledged, and count" in output
    assert [record.verdict for record in kept.read(out / "history").records] == [
        "not clean", "clean but for acknowledged", "not clean",
    ]  # fmt: skip
    assert json.loads((tmp_path / "out" / "since-last.json").read_text())["grown"][0]["more"] == 1
    page = (tmp_path / "out" / "index.html").read_text()
    assert "INC-4711" in page and "It has grown: 1 of 2" in page
