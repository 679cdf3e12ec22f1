"""A real console process for tests: `realmgate console` on a free port.

console = start_console(tmp_path, "--gateway", url); console.json("/errors.json"); console.stop()
"""

from __future__ import annotations

import json
import re
import select
import signal
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.kit.patience import HANG_S, until
from tests.kit.processes.gateway import REALMGATE
from tests.kit.wire.logins import PASSWORD

LISTENS = re.compile(r"console at (https?://\S+)\n")


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@dataclass(slots=True)
class ConsoleProcess:
    """One that is, or was, up. `get` follows no redirect, and takes whatever certificate there is."""

    process: subprocess.Popen[str]
    url: str
    log_path: Path

    def get(
        self, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None, method: str | None = None
    ) -> tuple[int, dict[str, str], str]:
        request = urllib.request.Request(self.url + path, body, dict(headers or {}), method=method)
        secure = ssl.create_default_context()
        secure.check_hostname, secure.verify_mode = False, ssl.CERT_NONE
        opener = urllib.request.build_opener(_NoRedirects, urllib.request.HTTPSHandler(context=secure))
        try:
            with opener.open(request, timeout=HANG_S) as answer:
                return answer.status, dict(answer.headers), answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, dict(error.headers), error.read().decode()

    def log_in(self, user: str) -> dict[str, str]:
        """The headers of a page of that user."""
        body = urlencode({"user": user, "password": PASSWORD}).encode()
        status, headers, _ = self.get("/login", {"Origin": self.url}, body)
        assert status == 303, status
        return {"Cookie": headers["set-cookie"].partition(";")[0], "Origin": self.url}

    def json(self, path: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        status, _, body = self.get(path, headers)
        assert status == 200, (status, body)
        document: dict[str, Any] = json.loads(body)
        return document

    def words(self, path: str) -> str:
        """What a page says, without its tags."""
        status, _, body = self.get(path)
        assert status == 200, (status, body)
        return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body)))

    def until(self, path: str, *wanted: str) -> str:
        """The page, as soon as it says all of that."""
        page = [""]

        def says() -> bool:
            page[0] = self.words(path)
            return all(word in page[0] for word in wanted)

        until(says, f"{wanted} on {path}")
        return page[0]

    def log(self) -> str:
        return self.log_path.read_text()

    def stop(self) -> int:
        """SIGTERM; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(HANG_S)
        finally:
            self.process.kill()
            self.process.wait()
            if self.process.stdout is not None:
                self.process.stdout.close()


def start_console(
    directory: Path, *arguments: str, listen: str = "http://127.0.0.1:0", gives_way: bool = False
) -> ConsoleProcess:
    """Return when it says where it listens. `gives_way`: as it does by itself to a gateway of this machine; a suite
    that keeps all cores busy would wait long. Raises RuntimeError with its log."""
    log_path = directory / "console.log"
    with log_path.open("a") as log:
        priority = [] if gives_way else ["--keep-priority"]
        command = [str(REALMGATE), "console", "--listen", listen, *priority, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], HANG_S)
    line = process.stdout.readline() if readable else ""
    match = LISTENS.fullmatch(line)
    if match is None:
        process.kill()
        process.wait()
        raise RuntimeError(f"the console did not start: {line}{log_path.read_text()}")
    return ConsoleProcess(process, match[1], log_path)
