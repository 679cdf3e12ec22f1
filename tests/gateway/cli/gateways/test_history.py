"""`realmgate history`: a table over the time, with the times of which there is no record; one realm counts once."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.gateways import history
from gateway.cli.gateways.admin_client import AdminProblem
from gateway.cli.gateways.history import asked_of
from native_backend.log.open import EMBEDDED_FILE
from tests.gateway.cli.command_line import Run, config, run
from tests.kit.patience import until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import StartGateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE

__all__ = ["config", "run"]

NOW_US = int(datetime(2026, 11, 24, 23, 10, 30, tzinfo=UTC).timestamp() * 1e6)
HOUR_US = 3_600_000_000
ADMIN = {"listen": "http://127.0.0.1:0"}


def arguments(**given: Any) -> Namespace:
    return Namespace(**{"since": None, "until": None, "by": None, "node": None, **given})


def test_the_time_that_is_read_is_of_whole_steps() -> None:
    window = asked_of(arguments(), NOW_US)
    assert (window.step, window.minutes, window.since_us % 60_000_000) == ("minute", 61, 0)
    steps = [asked_of(arguments(since=NOW_US - hours * HOUR_US), NOW_US).step for hours in (1, 3, 12, 24, 300)]
    assert steps == ["minute", "5min", "15min", "hour", "hour"]
    hours = asked_of(arguments(since=NOW_US - 90 * 60_000_000, by="hour"), NOW_US)
    assert (hours.minutes, hours.since_us % HOUR_US, hours.until_us % HOUR_US) == (180, 0, 0)
    late, long = "is not later than --since", "more than a year"
    for wrong, words in (({"since": NOW_US}, late), ({"since": NOW_US, "until": 1}, late), ({"since": 0}, long)):
        with pytest.raises(AdminProblem, match=words):
            asked_of(arguments(**wrong), NOW_US)


def line_of(text: str, title: str) -> list[str]:
    """The numbers of a line that begins so."""
    [numbers] = re.findall(rf"^{re.escape(title)} +(.*)$", text, re.MULTILINE)
    return str(numbers).split()


def test_a_night_with_a_kill_is_read(new_gateway: StartGateway, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = new_gateway("embedded", admin=ADMIN, limits={"history_interval_s": 1}, nodes={})
    gateway.command("node", "create", "orders")

    def shown(*words: str) -> tuple[int, str, str]:
        return run("history", "--gateway", Watch.of(gateway).url, *words, configured=False)

    def publish(count: int) -> None:
        with Peer(gateway.port) as peer:
            peer.stored("orders", *[MESSAGE] * count)

    publish(3)
    with Peer(gateway.port) as peer:
        peer.send(frames.attach_sender("ordres", 7, "to-ordres"))
        assert peer.refused() == "amqp:not-found"
    until(lambda: "attach.refuse-an-unknown-node" in shown()[1], "the first records")
    gateway.kill()
    gateway.start()
    publish(2)
    until(lambda: line_of(shown()[1], "TOTAL")[0] == "5", "both runs")
    code, text, _ = shown()
    assert code == 0 and text.startswith(f"gateway {Watch.of(gateway).health()['run']} at http://127.0.0.1:")
    *counts, p99, unit = line_of(text, "TOTAL")
    assert counts == ["5", "0", "0", "0", "0", "1", "0", "0", "0", "0", "5"] and float(p99) >= 1 and unit == "ms"
    assert "the gateway was killed or cut off; its last minute is not counted" in text
    assert "none is kept, or none was written" in text and "the minute under way is not in it" in text
    assert line_of(text, "orders") == ["5", *["0"] * 8]
    assert "1       fatal  amqp:not-found  -     attach.refuse-an-unknown-node  -" in text
    _, text, _ = shown("--node", "orders", "--by", "hour")
    assert line_of(text, "TOTAL") == ["5", *["0"] * 8] and "not-found" not in text

    url = Watch.of(gateway).url
    twice = ("--gateway", url.replace("127.0.0.1", "localhost"), "--gateway", "http://127.0.0.1:1")
    code, text, complaint = shown(*twice, "--json")
    assert code == 1 and "http://127.0.0.1:1 does not answer" in complaint
    reply, silent = json.loads(text)["gateways"]
    assert sum(entry[3] for row in reply["history"] for entry in row["deliveries"]) == 5, "one realm, counted once"
    assert [gap["why"] for gap in reply["gaps"]] == ["not kept", "killed"] and reply["known_us"]
    assert silent["problem"] and silent["history"] == []

    monkeypatch.setattr(history, "PAGES", 1)
    monkeypatch.setattr("gateway.cli.gateways.admin_client.ROWS", 1)
    _, text, _ = shown()
    assert "only the first 1 pages, until " in text and "choose a shorter time" in text
    gateway.stop()
    assert shown()[0] == 2


@pytest.mark.parametrize("kind", ["embedded", "kafka"])
def test_it_is_read_out_of_the_realm_where_no_gateway_answers(new_gateway: StartGateway, kind: str, run: Run) -> None:
    gateway = new_gateway(kind, admin=ADMIN, limits={"history_interval_s": 1}, nodes={})
    gateway.command("node", "create", "orders")
    with Peer(gateway.port) as peer:
        peer.stored("orders", *[MESSAGE] * 3)
    watch = Watch.of(gateway)

    def counted(rows: list[dict[str, Any]]) -> int:
        return sum(entry[3] for row in rows for entry in row["deliveries"])

    def answered() -> list[dict[str, Any]]:
        [reply] = json.loads(watch.ask("/api/history?minutes=60&limit=500")[2])["gateways"]
        rows: list[dict[str, Any]] = reply["history"]
        return rows

    def stored(*words: str) -> dict[str, Any]:
        [reply] = json.loads(gateway.command("history", "--stored", "--json", *words))["gateways"]
        return dict(reply)

    until(lambda: counted(answered()) == 3, "the messages in the history")
    known = answered()
    beside = stored()
    assert beside["history"][: len(known)] == known, "as the gateway answers it"
    assert (beside["state"], beside["run"]) == ("stored", None) and beside["known_us"] == known[0]["begin_us"]
    gateway.kill()
    reply = stored("--by", "hour")
    assert counted(reply["history"]) == 3 and reply["known_us"] == known[0]["begin_us"]
    text = gateway.command("history", "--stored")
    assert "read out of the realm itself, without a gateway" in text and line_of(text, "orders") == ["3", *["0"] * 8]
    place = ("--config", str(gateway.config_path))
    code, _, complaint = run("history", *place, "--stored", "--gateway", "http://127.0.0.1:1", configured=False)
    assert code == 2 and "not allowed with argument" in complaint
    code, _, complaint = run("history", "--gateway", "http://127.0.0.1:1", "--stored", configured=False)
    assert code == 2 and "--stored reads a realm itself: name its configuration" in complaint


def test_of_a_realm_that_was_never_opened_nothing_is_known_and_none_is_made(run: Run, config: Path) -> None:
    code, text, _ = run("history", "--stored")
    assert code == 0 and "no record" in text, text
    assert not (config.parent / "realm").exists()


def test_a_realm_that_cannot_be_read_says_so(run: Run, config: Path) -> None:
    (config.parent / "realm").mkdir()
    (config.parent / "realm" / EMBEDDED_FILE).write_bytes(b"no database" * 100)
    code, _, complaint = run("history", "--stored")
    assert code == 2 and "cannot be read: file is not a database; run it as the user" in complaint
