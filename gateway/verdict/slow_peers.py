"""Links on which nothing moves: consumers that hold what they got, consumers that let messages wait, publishers that
get no answer. No peer got an error for it. Seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import urlencode

from gateway.verdict.answers import Row
from gateway.verdict.peers_refused import RECENT_US
from gateway.verdict.problem import Problem, named
from gateway.verdict.standing import Standing

WAITS_S: Final = 5.0
"""While messages wait for it, a consumer that holds one for so long, or has no credit for so long, is named."""
HELD_S: Final = 60.0
"""The same of a consumer that holds one, and settles none, while none waits."""
QUEUE: Final = "queue"
"""The durable of a queue, in metrics."""


class Standstill(NamedTuple):
    """`for_s`: since when."""

    kind: str
    words: str
    remedy: str
    for_s: float


def slow_peers(gateways: Iterable[Standing], now_us: int) -> Iterator[Problem]:
    for gateway in gateways:
        if gateway.failed_us or now_us - gateway.links_us > RECENT_US:
            continue
        waiting = _with_waiting(gateway)
        for row in gateway.links:
            waits = (row["node"], row["durable"] or QUEUE) in waiting or bool(row["not_given"])
            still = standstill(row, waits)
            if still is not None:
                yield _problem(gateway, row, still)


def standstill(row: Row, waits: bool) -> Standstill | None:
    """What is wrong with a link. `waits`: there are messages that could be given to it now."""
    held_s, without_s = row["oldest_unsettled_s"] or 0, row["without_credit_s"] or 0
    if row["direction"] != "subscribe":
        return _unanswered(row, held_s) if row["node"] and held_s >= WAITS_S else None
    settled_s = row["last_outcome_s"]
    idle_s = held_s if settled_s is None else min(held_s, settled_s)  # one that prefetches holds the last one for long
    if idle_s > HELD_S or (waits and idle_s >= WAITS_S):
        return _holds(row, held_s)
    if waits and (held_s >= WAITS_S or without_s >= WAITS_S):
        return _slow(row, held_s, without_s)
    return None


def _holds(row: Row, held_s: float) -> Standstill:
    who, connection = peer_name(row), (row["id"] or "ID").rpartition(".")[0] or "ID"
    words = f"{who} holds {row['unsettled']:,} events of {row['node']} unsettled, the oldest for {held_s:,.0f} s."
    remedy = f"look at {who}; to free them: realmgate connection close {connection} --reason TEXT"
    if row["not_given"]:
        remedy = _of_a_topic(who)
    return Standstill("held-unsettled", words, remedy, held_s)


def _slow(row: Row, held_s: float, without_s: float) -> Standstill:
    who, many = peer_name(row), row["not_given"]
    why = f"no credit for {without_s:,.0f} s" if without_s > held_s else f"it settles an event after {held_s:,.0f} s"
    words = f"{who} is too slow for {row['node']}: {why}, and {f'{many:,} ' if many else ''}messages wait."
    remedy = _of_a_topic(who) if many else f"look at what {who} waits for, or add a consumer"
    return Standstill("slow-consumer", words, remedy, max(held_s, without_s))


def _of_a_topic(who: str) -> str:
    """Another subscriber takes no message from this one, and one that is closed gets those of now no more."""
    return f"look at what {who} waits for: a topic drops old messages, and what it has dropped {who} never gets"


def _unanswered(row: Row, held_s: float) -> Standstill:
    words = (
        f"{peer_name(row)} waits for the answer to {row['unsettled']:,} messages to {row['node']}, the oldest for"
        f" {held_s:,.0f} s."
    )
    return Standstill("publisher-waits", words, "the log is slow or does not answer: run realmgate doctor", held_s)


def peer_name(row: Row) -> str:
    return str(row["container"] or row["address"] or "a peer")


def _problem(gateway: Standing, row: Row, still: Standstill) -> Problem:
    return Problem(
        still.kind, "slow", still.words, "links", f"/links?{urlencode({'node': row['node'] or ''})}",
        node=row["node"] or "", user=row["user"] or "", container=row["container"] or "", who=named(row),
        rule=f"links.{still.kind}", remedy=still.remedy, count=int(row["unsettled"] or 0),
        since_us=gateway.links_us - int(still.for_s * 1e6), gateways=[gateway.name],
    )  # fmt: skip


def _with_waiting(gateway: Standing) -> set[tuple[str, str]]:
    """Nodes and durables with messages that could be given now."""
    waiting = gateway.samples.all("realmgate_durable_waiting_events")
    return {(labels.get("node", ""), labels.get("durable", "")) for labels, count in waiting if count}
