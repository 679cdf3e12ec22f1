"""`realmgate`, in which a part of the turn raises while a file names it: python -m tests.gateway.admin.failing_gateway

The file is named by the environment variable FAILS.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.cli.main import main
from gateway.evidence.notices import Notices
from gateway.evidence.outcomes import Outcomes
from gateway.links.consuming import ConsumingLink
from native_backend.events.window import StoreWindow
from native_backend.journal.journal import Journal
from native_backend.journal.lease import Lease
from native_backend.publish.topic_watch import TopicWatch
from native_backend.shard.counting import Counting

FAILS = "REALMGATE_TEST_FAILS"
BROKEN = "broken"  # the node whose events cannot be read
STEPS: dict[str, tuple[type, str]] = {  # by the name that /health gives it: what it calls
    "lease": (Lease, "_advance"),
    "journal": (Journal, "advance"),
    "outcome records": (Outcomes, "flush"),
    "notices and decisions": (Notices, "advance"),
}
OTHERS: dict[str, tuple[type, str]] = {  # peers can be served without it
    "counting": (Counting, "_go_on"),
    "topic watch": (TopicWatch, "_look"),
    "reading": (StoreWindow, "look"),
    "sending": (ConsumingLink, "pump"),
}


def _failing(name: str, original: Callable[..., Any], file: Path) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapped(self: Any, *arguments: Any) -> Any:
        node = getattr(self, "node", None) or getattr(getattr(self, "subscription", None), "node", None)
        if file.exists() and file.read_text() == name and (node is None or node.name == BROKEN):
            raise ZeroDivisionError(f"planted in {name}")
        return original(self, *arguments)

    return wrapped


if __name__ == "__main__":
    for _name, (_owner, _method) in {**STEPS, **OTHERS}.items():
        setattr(_owner, _method, _failing(_name, getattr(_owner, _method), Path(os.environ[FAILS])))
    sys.exit(main())
