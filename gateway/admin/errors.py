"""The last refusals and faults of a run: `/api/errors`. Microseconds since 1970."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from gateway.admin.answers import Answering, limit_of, number_of, place_of
from gateway.admin.http import Request, Response
from gateway.admin.remedies import remedy_for
from gateway.evidence.recent_errors import FIELDS, RecentError
from gateway.session.gateway import Gateway

_STEP: Final = 50  # entries looked at without a pause
_NAMES: Final = 500  # among which the nearest one is looked for: some milliseconds
_ASKED: Final = ("what", "user", "container", "node", "condition", "answer")


async def errors(gateway: Gateway, answering: Answering, request: Request) -> Response:
    """`?limit=&after=&since=&what=&user=&container=&node=&condition=&answer=`, the oldest first; `since`: those that
    happened, or happened again, at that time or later. Raises WrongParameter."""
    recent, limit = gateway.outcomes.recent, limit_of(request.query)
    above = place_of(request.query, answering.run)[0]
    since_us = number_of(request.query, "since", 0)
    wanted = {name: request.query[name] for name in _ASKED if request.query.get(name)}
    names = gateway.realm.metrics.node_names(_NAMES)
    rows: list[dict[str, Any]] = []
    following = None
    for at, entry in enumerate(recent.above(above), 1):
        if entry.at_us >= since_us and all(_is(entry, name, value) for name, value in wanted.items()):
            if len(rows) == limit:
                following = rows[-1]["id"]
                break
            rows.append(_row(answering.run, entry, names, _dead_letters_of(gateway, entry)))
            if entry.facts.get("condition") == "amqp:not-found":
                await asyncio.sleep(0)  # the nearest name was looked for
        if at % _STEP == 0:
            await asyncio.sleep(0)
    return answering.answer(errors=rows, left_out=recent.left_out, next=following)


def _dead_letters_of(gateway: Gateway, error: RecentError) -> str:
    """The node that has the dead letters of its node; empty: there is none."""
    node = gateway.realm.node(error.facts.get("node") or "")
    return node.properties.dead_letter if node is not None else ""


def _is(error: RecentError, name: str, value: str) -> bool:
    """Of a container: the first one, or one of the last."""
    if error.facts.get(name) == value:
        return True
    return name == "container" and any(example["container"] == value for example in error.examples)


def _row(run: str, error: RecentError, node_names: Sequence[str], dead: str) -> dict[str, Any]:
    return {
        "id": f"{run}.{error.number}",
        "first_us": error.first_us,
        "at_us": error.at_us,
        "count": error.count,
        "more": error.more,
        "more_nodes": [*error.more_nodes],
        **{name: error.facts.get(name) for name in FIELDS},
        "examples": [*error.examples],
        "text": error.text,
        "remedy": remedy_for(error.facts, node_names, dead),
        "delivery": error.delivery,
    }
