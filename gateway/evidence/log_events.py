"""Events in the log: what a line is about, for programs that read the log as JSON (`gateway.serve.log_format`).

log.info("tables %s are active", digest, extra=about("tables active", digest=digest))
"""

from __future__ import annotations

from typing import Any


def about(event: str, **facts: Any) -> dict[str, Any]:
    """`event`: one of a few words of ours. Facts that are None or empty are left out."""
    return {"about": {"event": event, **facts}}
