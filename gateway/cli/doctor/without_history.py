"""The topic of the history is not there: is it lost, or does a gateway of an earlier release serve, which makes none?

The gateway at `admin.listen` is asked for `/api/history`: only an earlier release has no such page (404). It counts
where it is the run that owns the realm. Seconds. `LogError` is the caller's. Blocks.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from functools import cached_property
from typing import Any, Final

from gateway.cli.doctor.finding import Finding, not_looked_at, ok
from gateway.cli.doctor.realm import lease_of
from gateway.config.settings import Settings
from native_backend.journal.process_liveness import SystemLiveness
from native_backend.log.port import Log
from native_backend.nodes.words import HISTORY

_NO_PAGE: Final = 404


class WithoutHistory:
    """Asks the gateway once, and only where a check needs it."""

    def __init__(self, settings: Settings, log: Log, timeout_s: float) -> None:
        self._settings, self._log, self._timeout_s = settings, log, timeout_s

    def finding(self, check: str) -> Finding | None:
        """What that check says of the missing topic; None: the topic is lost."""
        is_earlier, words = self._serving
        if is_earlier is None:
            topic = f"{self._settings.realm.prefix}.{HISTORY}"
            return not_looked_at(
                check, f"{topic} is not there; whether the gateway that serves writes one is not known: {words}"
            )
        return ok(check, words) if is_earlier else None

    @cached_property
    def _serving(self) -> tuple[bool | None, str]:
        """Is it of an earlier release; None: that is not known, and why."""
        admin, lease = self._settings.admin, lease_of(self._log, self._settings.realm.prefix)
        if lease is None or lease.free or SystemLiveness().gone(lease.process):
            return None, "none serves"
        if admin is None or admin.port == 0:
            return None, "the configuration has no admin address with a port to ask"
        try:
            answers = _asked(f"{admin.url}/health", self._timeout_s)[1].get("run")
            status, _ = _asked(f"{admin.url}/api/history?limit=1", self._timeout_s)
        except (OSError, ValueError) as error:
            return None, f"{admin.url} does not answer: {error}"
        if answers != lease.run:
            return None, f"run {answers} at {admin.url} does not own the realm"
        words = f"run {lease.run} is of an earlier release, which writes no history: its topic comes with the upgrade"
        return status == _NO_PAGE, words


def _asked(url: str, timeout_s: float) -> tuple[int, dict[str, Any]]:
    """Status, and the document; empty where the answer is none. Raises OSError, ValueError."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:  # noqa: S310
            status, body = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        status, body = error.code, error.read()
    document = json.loads(body) if status != _NO_PAGE else {}
    return status, document if isinstance(document, dict) else {}
