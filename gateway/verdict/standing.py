"""What one gateway has answered last, and when: all that a verdict is made from. Microseconds since 1970."""

from __future__ import annotations

from collections import deque
from urllib.parse import urlsplit

from gateway.verdict.answers import Row
from gateway.verdict.limits import ERRORS
from gateway.verdict.samples import Samples

WAITS = ("standby", "opening")
SERVES = ("ready", "degraded")


class Standing:
    """`name` is unique among the gateways that are looked at together."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = urlsplit(url).netloc
        self.health: Row = {}
        self.samples = Samples()
        self.errors: deque[Row] = deque(maxlen=ERRORS)
        self.links: list[Row] = []
        self.links_us = 0
        self.answered_us = 0
        self.failed_us = 0  # since when it does not answer; 0: it does
        self.problem = ""  # why it could not be asked, or its answer not be used

    @property
    def run(self) -> str:
        return str(self.health.get("run") or "")

    @property
    def state(self) -> str:
        """The gateway's own word; `unknown` where it does not answer."""
        return "unknown" if not self.health or self.failed_us else str(self.health["state"])

    @property
    def answers(self) -> bool:
        return bool(self.answered_us) and not self.failed_us

    @property
    def serves(self) -> bool:
        return self.state in SERVES
