"""Asking a gateway's admin pages as an operator does, and reading what Prometheus would read.

watch = Watch.of(process); watch.health()["state"]; watch.metrics()["realmgate_ready", ()]
"""

from __future__ import annotations

import json
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess, realmgate

DEADLINE_S = HANG_S
SAID = re.compile(r"health and metrics at (http://\S+)")
Samples = dict[tuple[str, tuple[str, ...]], float]


class Watch:
    """See the module's docstring."""

    def __init__(self, url: str) -> None:
        self.url = url

    @classmethod
    def of(cls, process: GatewayProcess) -> Watch:
        """Where it said that it listens, the last time."""
        process.await_log("health and metrics at")
        return cls(SAID.findall(process.log_path.read_text())[-1])

    def ask(self, path: str, method: str = "GET", timeout_s: float = 90) -> tuple[int, dict[str, str], bytes]:
        request = urllib.request.Request(self.url + path, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return answer.status, dict(answer.headers), answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers), error.read()

    def command(self, *arguments: str) -> str:
        """`realmgate ARGUMENTS --gateway ...`; returns what it prints."""
        code, printed, complaints = realmgate(*arguments, "--gateway", self.url)
        assert code == 0, complaints
        return printed

    def health(self) -> dict[str, Any]:
        status, headers, body = self.ask("/health")
        assert headers["Content-Type"] == "application/json"
        return {"status": status, **json.loads(body)}

    def metrics(self) -> Samples:
        """By name and label values, in the order of the labels' names."""
        status, headers, body = self.ask("/metrics")
        assert status == 200
        assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
        samples: Samples = {}
        for family in text_string_to_metric_families(body.decode()):
            for sample in family.samples:
                key = (sample.name, tuple(value for _, value in sorted(sample.labels.items())))
                assert key not in samples, f"{key} stands twice"
                samples[key] = sample.value
        return samples

    def until_zero(self, *gauges: str) -> None:
        """Nothing is left of what they count, as when a test has closed its sockets."""
        self.until(lambda: not any(self.metrics()[name, ()] for name in gauges))

    def scrape(self, job: str = "realmgate") -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        """By name and labels, as Prometheus keeps them, with its own `up`."""
        up = ("up", frozenset({"job": job}.items()))
        try:
            _, _, body = self.ask("/metrics")
        except OSError:
            return {up: 0.0}
        return {up: 1.0} | {
            (sample.name, frozenset({**sample.labels, "job": job}.items())): sample.value
            for family in text_string_to_metric_families(body.decode())
            for sample in family.samples
        }

    def until(self, reached: Callable[[], bool]) -> None:
        end = time.monotonic() + DEADLINE_S
        while not reached():
            assert time.monotonic() < end, (self.health(), self.metrics())
            time.sleep(0.05)

    def say(self, *pieces: bytes, half_close: bool = False) -> bytes:
        """As a peer that may say anything; what comes back until the other side closes."""
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        with socket.create_connection((host, int(port)), timeout=HANG_S) as peer:
            for piece in pieces:
                peer.sendall(piece)
            if half_close:
                peer.shutdown(socket.SHUT_WR)
            answer = bytearray()
            try:
                while data := peer.recv(65_536):
                    answer += data
            except ConnectionResetError:
                return bytes(answer) + b"(reset)"
            return bytes(answer)
