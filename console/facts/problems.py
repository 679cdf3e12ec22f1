"""What needs an operator now, each in one line: what is wrong, who, which rule, since when, how often, what to do.

Made here from what gateways answer, in an order: what may lose messages, then fatal, transient, and what is merely
slow; within each the newest first. The remedies are the gateways' own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from console.facts.answers import Row
from console.facts.errors import kind_of_entry, who_of
from console.facts.gateway import WAITS, Gateway
from console.facts.reports import Report

RECENT_US: Final = 600_000_000
_OLD_US: Final = 2 * 86_400_000_000
_HELD_S: Final = 60.0
_NO_CREDIT_S: Final = 60.0
_LOSES: Final = ("topic-missing", "topic-made-again", "evidence-refused", "turn-fails")
_RANK: Final = {"fatal": 1, "indeterminate": 2, "transient": 3, "slow": 4}


@dataclass(slots=True)
class Problem:
    """`kind` is one word, for programs; `klass` one of the board's, or `slow`: no peer got an error. `page` explains
    it, at `link`. 0 us: not known."""

    kind: str
    klass: str
    words: str
    page: str
    link: str
    more: str = ""
    who: str = ""
    rule: str = ""
    since_us: int = 0
    last_us: int = 0
    count: int = 0
    remedy: str = ""
    gateways: list[str] = field(default_factory=list)
    loses: bool = False

    def document(self) -> dict[str, Any]:
        found = asdict(self)
        found["class"] = found.pop("klass")
        return found


def problems(gateways: Sequence[Gateway], reports: Sequence[Report], now_us: int) -> list[Problem]:
    found = [
        *_gone(gateways),
        *_own(gateways),
        *_differing(gateways),
        *_refused(gateways, now_us),
        *_links(gateways, now_us),
        *_reconciled(reports, now_us),
    ]
    return sorted(found, key=lambda each: (not each.loses, _RANK.get(each.klass, 5), -each.since_us))


def _gone(gateways: Iterable[Gateway]) -> Iterator[Problem]:
    for gateway in gateways:
        if gateway.failed_us:
            yield Problem(
                "gateway-gone", "fatal", f"{gateway.name} does not answer.", "gateways", "/gateways",
                more=gateway.problem, since_us=gateway.answered_us or gateway.failed_us, gateways=[gateway.name],
                remedy="look whether that gateway runs: systemctl status realmgate; its log says why it ended",
            )  # fmt: skip
    serving = [each for each in gateways if each.serves]
    waiting = [each for each in gateways if each.answers and each.state in WAITS]
    if waiting and not serving:
        names = [each.name for each in waiting]
        words = f"No gateway serves; {', '.join(names)} {'waits' if len(names) == 1 else 'wait'}."
        detail = str(waiting[0].health.get("detail") or "")
        remedy = "wait until one has taken over; realmgate doctor names what keeps it"
        yield Problem(
            "none-serves", "fatal", words, "gateways", "/gateways", more=detail, remedy=remedy, gateways=names
        )


def _own(gateways: Iterable[Gateway]) -> Iterator[Problem]:
    """What /health names."""
    for gateway in gateways:
        if gateway.failed_us:
            continue
        for each in gateway.health.get("problems", ()):
            about = f"{each['about']}: " if each["about"] else ""
            keeps_out = each["kind"] == gateway.state
            yield Problem(
                each["kind"], "fatal" if keeps_out or each["kind"] in _LOSES else "transient",
                f"{about}{each['kind'].replace('-', ' ')}.", "gateways", "/gateways", more=each["detail"],
                since_us=int(each["since_us"]), remedy=each["remedy"], gateways=[gateway.name],
                loses=each["kind"] in _LOSES,
            )  # fmt: skip


def _differing(gateways: Iterable[Gateway]) -> Iterator[Problem]:
    digests = {each.name: str(each.health["digest"]) for each in gateways if each.answers and each.health["digest"]}
    if len({*digests.values()}) > 1:
        words = "Gateways decide by different tables: " + ", ".join(
            f"{name} {digest[:8]}" for name, digest in digests.items()
        )
        remedy = "load the same tables on each: realmgate mappings diff OLD NEW says what differs"
        yield Problem("tables-differ", "transient", f"{words}.", "rules", "/rules", remedy=remedy, gateways=[*digests])


def _refused(gateways: Sequence[Gateway], now_us: int) -> Iterator[Problem]:
    """What peers were refused in the last ten minutes, by what it is, node and user."""
    alike: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for gateway in gateways:
        for row in gateway.errors:
            if now_us - int(row["at_us"] or 0) <= RECENT_US:
                alike[(kind_of_entry(row), row["node"], row["user"])].append({**row, "gateway": gateway.name})
    names = _node_names(gateways)
    for (kind, _, _), rows in alike.items():
        last = rows[-1]
        words, what = sentence(last)
        nearest = nearest_name(last["node"] or "", names) if what == "node-unknown" else ""
        link = f"/errors/one?{urlencode({name: value for name, value in kind.address.items() if value})}"
        yield Problem(
            what, "slow" if kind.klass == "other" else kind.klass, words,
            "refusals" if what in ("denied", "login-failed", "node-unknown") else "errors", link,
            more=f"The nearest name is {nearest}." if nearest else "" if what != "refused" else last["text"] or "",
            who=_who(rows), rule=last["rule"] or "", since_us=min(int(row["first_us"] or 0) for row in rows),
            last_us=int(last["at_us"] or 0), count=sum(int(row["count"] or 0) for row in rows),
            remedy=last["remedy"] or "", gateways=sorted({row["gateway"] for row in rows}),
        )  # fmt: skip


def sentence(row: Row) -> tuple[str, str]:
    """What is wrong, and the kind of problem that it is."""
    user, node = row["user"] or "a peer", row["node"] or "(no node)"
    container = row["container"] or row["address"] or "a peer"
    fault, answer, condition = row["fault"] or "", row["answer"] or "", row["condition"] or ""
    if fault in ("failed-login", "login-unheard"):
        return f"User {user} cannot log in: wrong password, certificate or name.", "login-failed"
    if answer == "access-denied" or fault == "access-denied":
        verb = {"publish": "publish to", "subscribe": "subscribe to"}.get(row["direction"] or "", "use")
        return f"{user} may not {verb} {node}.", "denied"
    if condition == "amqp:not-found" and row["what"] == "attach":
        return f"{node} does not exist.", "node-unknown"
    if answer == "capacity-reached":
        return f"{node} is full.", "node-full"
    if answer == "too-large" or fault in ("message-too-large", "too-large-for-the-consumer"):
        return f"{container} sends messages that are too large for {node}.", "message-too-large"
    if fault == "sasl":
        return f"{row['address'] or 'A peer'} has no login in common with the gateway.", "login-failed"
    if fault:
        return f"{container} broke the protocol: {fault}.", "fault"
    if row["outcome"]:
        return f"{node}: deliveries of {container} got {row['outcome']}.", "refused"
    return f"{node}: {row['what']} of {container} was refused.", "refused"


def _who(rows: Iterable[Row]) -> str:
    people = who_of(rows)
    first = people[0]
    user = f"user {first['user']}" if first["user"] else ""
    named = ", ".join(filter(None, (first["container"], user, first["address"])))
    return named + (f", and {len(people) - 1} more" if len(people) > 1 else "")


def _links(gateways: Iterable[Gateway], now_us: int) -> Iterator[Problem]:
    """Consumers that hold what they got, and that let others wait."""
    for gateway in gateways:
        if gateway.failed_us or now_us - gateway.links_us > RECENT_US:
            continue
        waiting = _with_waiting(gateway)
        for row in gateway.links:
            if row["direction"] != "subscribe":
                continue
            if (row["oldest_unsettled_s"] or 0) > _HELD_S:
                yield _held(gateway, row)
            elif row["node"] in waiting and (row["without_credit_s"] or 0) > _NO_CREDIT_S:
                yield _slow(gateway, row)


def _held(gateway: Gateway, row: Row) -> Problem:
    who, age_s = row["container"] or row["address"] or "a peer", row["oldest_unsettled_s"]
    words = f"{who} holds {row['unsettled']:,} events of {row['node']} unsettled, the oldest for {age_s:,.0f} s."
    connection = (row["id"] or "ID").rpartition(".")[0] or "ID"
    remedy = f"look at {who}; to free them: realmgate connection close {connection} --reason TEXT"
    return _of_link("held-unsettled", gateway, row, words, remedy, age_s)


def _slow(gateway: Gateway, row: Row) -> Problem:
    who, without_s = row["container"] or row["address"] or "a peer", row["without_credit_s"]
    words = f"{who} is too slow for {row['node']}: no credit for {without_s:,.0f} s, and messages wait."
    remedy = f"look at what {who} waits for, or add a consumer"
    return _of_link("slow-consumer", gateway, row, words, remedy, without_s)


def _of_link(kind: str, gateway: Gateway, row: Row, words: str, remedy: str, for_s: float) -> Problem:
    who = ", ".join(filter(None, (row["container"], f"user {row['user']}" if row["user"] else "", row["address"])))
    return Problem(
        kind, "slow", words, "links", f"/links?{urlencode({'node': row['node'] or ''})}", who=who, remedy=remedy,
        count=int(row["unsettled"] or 0), since_us=gateway.links_us - int(for_s * 1e6), gateways=[gateway.name],
    )  # fmt: skip


def _with_waiting(gateway: Gateway) -> set[str]:
    """Nodes with messages that could be given now."""
    return {
        labels.get("node", "") for labels, count in gateway.samples.all("realmgate_durable_waiting_events") if count
    }


def _reconciled(reports: Sequence[Report], now_us: int) -> Iterator[Problem]:
    if not reports:
        return
    last = reports[0]
    if last.verdict != "clean":
        yield Problem(
            "reconciliation", "fatal" if last.verdict == "not clean" else "transient",
            f"The last reconciliation is {last.verdict}.", "reconciliation", "/reconciliation", more=last.sentence,
            since_us=last.at_us, remedy="read the report: each finding says what to do",
            loses=any(one["class"] == "P1" for one in last.classes),
        )  # fmt: skip
    elif now_us - last.at_us > _OLD_US:
        yield Problem(
            "reconciliation-old", "transient", "The last reconciliation is older than two days.", "reconciliation",
            "/reconciliation", since_us=last.at_us, remedy="realmgate reconcile --config FILE --out DIR",
        )  # fmt: skip


def _node_names(gateways: Iterable[Gateway]) -> set[str]:
    """Of a store that is still being counted there is no number of events, but its limit."""
    families = ("realmgate_node_events", "realmgate_node_events_limit")
    return {labels.get("node", "") for each in gateways for name in families for labels, _ in each.samples.all(name)}


def nearest_name(wrong: str, names: Iterable[str]) -> str:
    """The one that is at most two edits away, case ignored; a swapped pair counts one. Empty: there is none."""
    found = [(edits(wrong.lower(), name.lower()), name) for name in names if abs(len(name) - len(wrong)) <= 2]
    best = min(found, default=(3, ""))
    return best[1] if best[0] <= 2 and len(wrong) > 2 else ""


def edits(one: str, other: str) -> int:
    """Letters to add, take away, replace or swap. Source: optimal string alignment."""
    before: list[int] = []
    row: list[int] = [*range(len(other) + 1)]
    for at, letter in enumerate(one, 1):
        earlier, before, row = before, row, [at]
        for to, there in enumerate(other, 1):
            cost = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (letter != there))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == there:
                cost = min(cost, earlier[to - 2] + 1)
            row.append(cost)
    return row[-1]
