"""What needs an operator now, each in one line: what is wrong, where, who, which rule, since when, how often, what to
do.

Made from what gateways answer, in an order: what may lose messages, then fatal, transient, and what is merely slow;
within each the newest first. The remedies are the gateways' own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from gateway.verdict.answers import Row
from gateway.verdict.peers_refused import is_without_room, peers_refused
from gateway.verdict.problem import Problem, named_all
from gateway.verdict.reports import ACKNOWLEDGED, Report
from gateway.verdict.slow_peers import slow_peers
from gateway.verdict.standing import WAITS, Standing

_OLD_US: Final = 2 * 86_400_000_000
_LOSES: Final = ("topic-missing", "topic-made-again", "topic-deletes", "evidence-refused", "turn-fails")
_RANK: Final = {"fatal": 1, "indeterminate": 2, "transient": 3, "slow": 4}
_OF_NODES: Final = "topic-"
_OF_THE_LOG: Final = ("cannot-write", "lease-lapsed", "log-unreachable", "metadata-unread")
_NOT_STORED: Final = ("unavailable", "indeterminate")
_BEFORE_US: Final = 2_000_000
"""A refusal may be noted a moment before the problem is."""
_UNANSWERED_S: Final = 1.0


def problems(gateways: Sequence[Standing], reports: Sequence[Report], now_us: int) -> list[Problem]:
    listed = [
        *_gone(gateways),
        *_own(gateways),
        *_differing(gateways),
        *peers_refused(gateways, now_us),
        *slow_peers(gateways, now_us),
        *_reconciled(reports, now_us),
    ]
    return sorted(listed, key=lambda problem: (not problem.loses, _RANK.get(problem.klass, 5), -problem.since_us))


def open_words(listed: Sequence[Problem]) -> str:
    """How many there are, as one sentence."""
    count, lost = len(listed), sum(problem.loses for problem in listed)
    words = f"{count} problem is open" if count == 1 else f"{count} problems are open"
    return f"{words}; {lost} may lose messages." if lost else f"{words}." if count else "Nothing is wrong."


def _gone(gateways: Iterable[Standing]) -> Iterator[Problem]:
    for gateway in gateways:
        if gateway.failed_us:
            yield Problem(
                "gateway-gone", "fatal", f"{gateway.name} does not answer.", "gateways", "/gateways",
                more=gateway.problem, rule="gateways.gateway-gone",
                since_us=gateway.answered_us or gateway.failed_us, gateways=[gateway.name],
                remedy="look whether that gateway runs: systemctl status realmgate; its log says why it ended",
            )  # fmt: skip
    serving = [standing for standing in gateways if standing.serves]
    waiting = [standing for standing in gateways if standing.answers and standing.state in WAITS]
    if waiting and not serving:
        names = [standing.name for standing in waiting]
        yield Problem(
            "none-serves", "fatal", f"No gateway serves; {', '.join(names)} {'waits' if len(names) == 1 else 'wait'}.",
            "gateways", "/gateways", more=str(waiting[0].health.get("detail") or ""), rule="gateways.none-serves",
            remedy="wait until one has taken over; realmgate doctor names what keeps it", gateways=names,
        )  # fmt: skip


def _own(gateways: Iterable[Standing]) -> Iterator[Problem]:
    """What /health names."""
    for gateway in gateways:
        if gateway.failed_us:
            continue
        for trouble in gateway.health.get("problems", ()):
            about = f"{trouble['about']}: " if trouble["about"] else ""
            keeps_out = trouble["kind"] == gateway.state
            yield Problem(
                trouble["kind"], "fatal" if keeps_out or trouble["kind"] in _LOSES else "transient",
                f"{about}{trouble['kind'].replace('-', ' ')}.", "gateways", "/gateways", more=trouble["detail"],
                rule=f"health.{trouble['kind']}", since_us=int(trouble["since_us"]), remedy=trouble["remedy"],
                gateways=[gateway.name], loses=trouble["kind"] in _LOSES, **_concerned(gateway, trouble),
            )  # fmt: skip


def _concerned(gateway: Standing, problem: Row) -> dict[str, Any]:
    """The node and the peers: of a node that is broken, those with a link to it and those that had one; of a log that
    does not answer, those that wait for its answer, or got another one than they asked for."""
    kind = problem["kind"]
    if kind.startswith(_OF_NODES) and problem["about"]:
        links = [row for row in (*gateway.links, *gateway.errors) if row["node"] == problem["about"]]
        nodes = [problem["about"]]
    elif kind in _OF_THE_LOG:
        links = [row for row in gateway.links if row["node"] and _is_unanswered(row)]
        since_us = int(problem["since_us"]) - _BEFORE_US
        links += [row for row in gateway.errors if _is_unstored(row) and int(row["at_us"] or 0) >= since_us]
        nodes = sorted({str(row["node"]) for row in links})
    else:
        return {}
    first = links[0] if links else {}
    return {
        "node": ", ".join(nodes),
        "user": first.get("user") or "",
        "container": first.get("container") or "",
        "who": named_all(links),
    }


def _is_unstored(row: Row) -> bool:
    """A delivery that the log did not take."""
    return row["what"] == "delivery" and bool(row["node"]) and (row["answer"] in _NOT_STORED or is_without_room(row))


def _is_unanswered(row: Row) -> bool:
    """A publisher whose message has no outcome yet, a consumer whose settlement the journal does not hold yet."""
    if row["direction"] == "subscribe":
        return bool(row["waiting"])
    return (row["oldest_unsettled_s"] or 0) >= _UNANSWERED_S


def _differing(gateways: Iterable[Standing]) -> Iterator[Problem]:
    digests = {
        gateway.name: str(gateway.health["digest"])
        for gateway in gateways
        if gateway.answers and gateway.health["digest"]
    }
    if len({*digests.values()}) > 1:
        which = ", ".join(f"{name} {digest[:8]}" for name, digest in digests.items())
        yield Problem(
            "tables-differ", "transient", f"Gateways decide by different tables: {which}.", "rules", "/rules",
            rule="gateways.tables-differ", gateways=[*digests],
            remedy="load the same tables on each: realmgate mappings diff OLD NEW says what differs",
        )  # fmt: skip


def _reconciled(reports: Sequence[Report], now_us: int) -> Iterator[Problem]:
    unread = [report.problem for report in reports if not report.at_us]
    if unread:
        more = f" And {len(unread) - 1} more." if unread[1:] else ""
        yield Problem(
            "reconciliation-unread", "transient", "A report of a reconciliation cannot be read.", "reconciliation",
            "/reconciliation", more=f"{unread[0]}.{more}", rule="reconciliation.unread",
            remedy="name the directory that realmgate reconcile --out has, and let this user read it",
        )  # fmt: skip
    if not reports or not reports[0].at_us:
        return
    last = reports[0]
    passed = last.expired(f"{datetime.fromtimestamp(now_us / 1_000_000, UTC):%Y-%m-%d}")
    if last.verdict not in ("clean", ACKNOWLEDGED):
        yield Problem(
            "reconciliation", "fatal" if last.verdict == "not clean" else "transient",
            f"The last reconciliation is {last.verdict}.", "reconciliation", "/reconciliation",
            more=last.sentence or last.problem, rule="reconciliation.verdict", since_us=last.at_us,
            remedy="read the report: each finding says what to do",
            loses=any(row["class"] == "P1" for row in last.classes),
        )  # fmt: skip
    elif passed:
        yield Problem(
            "acknowledgement-expired", "transient", "An acknowledgement of the last reconciliation has expired.",
            "reconciliation", "/reconciliation", more=", ".join(passed[:5]), rule="reconciliation.acknowledged",
            remedy="mend what was found, or acknowledge it anew; then realmgate reconcile --config FILE --out DIR",
        )  # fmt: skip
    elif now_us - last.at_us > _OLD_US:
        yield Problem(
            "reconciliation-old", "transient", "The last reconciliation is older than two days.", "reconciliation",
            "/reconciliation", rule="reconciliation.age", since_us=last.at_us,
            remedy="realmgate reconcile --config FILE --out DIR",
        )  # fmt: skip
