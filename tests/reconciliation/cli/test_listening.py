"""The latest verdict over HTTP: what Prometheus takes, and peers that hold what there is of turns."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from http.client import HTTPConnection
from pathlib import Path

import pytest

from reconciliation.cli import listening as server
from reconciliation.cli.listening import AT_ONCE, listening
from reconciliation.model.errors import SetupError
from reconciliation.model.folder import LocalFolder
from reconciliation.report.latest import METRICS, Failed, Latest, write
from tests.kit.patience import HANG_S, until
from tests.reconciliation.history.runs import AT_US, lost, record

HERE = ("127.0.0.1", 0)


def now() -> int:
    return AT_US


def get(port: int, path: str) -> tuple[int, str, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=HANG_S)
    connection.request("GET", path)
    answer = connection.getresponse()
    reply = answer.status, answer.headers["Content-Type"], answer.read().decode()
    connection.close()
    return reply


def test_there_is_a_verdict_once_there_was_a_round() -> None:
    latest = Latest(None, "um", 60.0, Failed(2, AT_US, 'no "realm"\\'))
    with listening(HERE, lambda: latest, now) as port:
        status, kind, body = get(port, "/verdict")
        assert (status, kind) == (503, "application/json")
        assert json.loads(body)["failed"]["why"] == 'no "realm"\\' and "verdict" not in json.loads(body)
        assert "realmgate_verdict{" not in get(port, "/metrics")[2]
        latest = Latest(record(lost(1)), "um", 60.0)
        status, _, body = get(port, "/verdict?pretty")
        assert status == 200 and json.loads(body)["verdict"] == "not clean" and "failed" not in json.loads(body)
        assert get(port, "/")[0] == 404


def test_the_age_grows_while_no_round_ends() -> None:
    now_us = AT_US + 5_000_000
    with listening(HERE, lambda: Latest(record(), "um", 60.0), lambda: now_us) as port:
        assert 'realmgate_verdict_age_seconds{realm="um"} 5\n' in get(port, "/metrics")[2]
        now_us += 3_600_000_000
        assert 'realmgate_verdict_age_seconds{realm="um"} 3605\n' in get(port, "/metrics")[2]


@pytest.mark.parametrize("every_s", [None, 60.0])
def test_promtool_takes_the_metrics(every_s: float | None) -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None
    text = Latest(record(lost(1)), 'u"m\\', every_s).metrics(AT_US + 1)
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=HANG_S)
    assert (done.returncode, done.stderr) == (0, ""), text


def test_a_file_has_no_age(tmp_path: Path) -> None:
    """It is read later than it is written: that it is written again would make an old verdict young."""
    folder = LocalFolder(tmp_path)
    write(folder, Latest(record(), "um"))
    text = (folder.path / METRICS).read_text()
    assert f'realmgate_verdict_timestamp_seconds{{realm="um"}} {AT_US // 1_000_000}' in text and "age" not in text


def silent(port: int) -> socket.socket:
    """It has begun to ask, and does not go on."""
    peer = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
    peer.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
    return peer


def test_so_many_are_answered_at_a_time() -> None:
    with listening(HERE, lambda: Latest(record(), "um"), now) as port:
        peers = [silent(port) for _ in range(AT_ONCE)]
        assert socket.create_connection(("127.0.0.1", port), timeout=HANG_S).recv(1) == b"", "all turns are taken"
        for peer in peers:
            peer.close()
        until(lambda: get_or_none(port), "a turn, which is given back when its thread has ended")


def test_a_peer_that_does_not_go_on_loses_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "TURN_S", 0.2)
    with listening(HERE, lambda: Latest(record(), "um"), now) as port:
        assert silent(port).recv(1) == b""


def get_or_none(port: int) -> str | None:
    try:
        return get(port, "/metrics")[2]
    except OSError:
        return None


def test_a_port_that_is_taken_is_named() -> None:
    with (
        listening(HERE, lambda: Latest(None, "um"), now) as port,
        pytest.raises(SetupError, match=f"--listen 127.0.0.1:{port}: Address already in use"),
        listening(("127.0.0.1", port), lambda: Latest(None, "um"), now),
    ):
        pass
