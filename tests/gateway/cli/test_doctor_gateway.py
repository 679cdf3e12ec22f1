"""The line `gateway` of `realmgate doctor`: what a gateway answers at its admin address, in each state it may have."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from gateway.cli.doctor.finding import Finding
from gateway.cli.doctor.machine import running
from gateway.config.settings import load_settings


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """The address of a server that answers each GET so."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def found(directory: Path, address: str) -> list[Finding]:
    config = directory / "gateway.yaml"
    config.write_text(f'realm: {{kind: embedded, path: realm}}\nadmin: {{listen: "{address}"}}\n')
    return [*running(load_settings(config))]


@pytest.mark.parametrize(
    ("status", "state", "line"),
    [
        (200, "ready", "ok"),
        (200, "degraded", "ok"),  # each problem has a line of its own
        (200, "standby", "ok"),
        (503, "opening", "warn"),
        (503, "taken-over", "warn"),
        (503, "stopping", "warn"),
        (503, "turn-fails", "warn"),
        (503, "of a later release", "warn"),
    ],
)
def test_a_gateway_that_serves_no_peer_is_not_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, state: str, line: str
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # which the commands do not go by
    body = {"state": state, "run": "19aa5b3c1f0-9c2e", "detail": "reads the journal", "evidence": {"pending": 3}}
    with answering(status, json.dumps(body).encode()) as address:
        [finding] = found(tmp_path, address)
    assert (finding.check, finding.status) == ("gateway", line)
    assert f"it is {state}" in finding.words
    assert ("reads the journal" in finding.words, bool(finding.remedy)) == (line == "warn", line == "warn")


def test_each_problem_is_a_line_beside_a_state_that_serves_no_peer(tmp_path: Path) -> None:
    problem = {"kind": "evidence", "about": "outcomes", "detail": "12 wait", "remedy": "see the broker's log"}
    body = {"state": "lease-lapsed", "run": "19aa5b3c1f0-9c2e", "problems": [problem]}
    with answering(503, json.dumps(body).encode()) as address:
        findings = found(tmp_path, address)
    assert [finding.status for finding in findings] == ["FAIL", "warn"]


def test_an_answer_that_is_none_of_a_gateway_was_not_looked_at(tmp_path: Path) -> None:
    with answering(502, b"<html>Bad gateway</html>") as address:
        [finding] = found(tmp_path, address)
    assert finding.status == "not looked at"
