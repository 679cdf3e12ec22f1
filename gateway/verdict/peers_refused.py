"""What peers were refused in the last ten minutes, by what it is, node and user."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from gateway.verdict.answers import Row
from gateway.verdict.kinds import GIVEN_UP, kind_of_entry, who_of
from gateway.verdict.nearest_name import nearest_name
from gateway.verdict.problem import Problem, named_all
from gateway.verdict.standing import Standing

RECENT_US: Final = 600_000_000
_HAVE_TEXT: Final = (GIVEN_UP, "refused")
_TOO_MANY: Final = {
    "too-many-connections": "connections",
    "too-many-links": "links",
    "too-many-nodes": "temporary queues",
    "too-many-durables": "durables",
    "too-many-stores": "nodes with consumers",
}
_REFUSALS: Final = ("denied", "login-failed", "node-unknown")


def peers_refused(gateways: Sequence[Standing], now_us: int) -> Iterator[Problem]:
    alike: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for gateway in gateways:
        for row in gateway.errors:
            if now_us - int(row["at_us"] or 0) <= RECENT_US:
                alike[(kind_of_entry(row), row["node"], row["user"])].append({**row, "gateway": gateway.name})
    names = _node_names(gateways)
    for rows in alike.values():
        yield _problem(rows, names)


def _problem(rows: Sequence[Row], names: set[str]) -> Problem:
    """`rows`: alike, the oldest first."""
    last, kind, people = rows[-1], kind_of_entry(rows[-1]), who_of(rows)
    words, what = sentence(last)
    is_given_up = what == GIVEN_UP
    nearest = nearest_name(last["node"] or "", names) if what == "node-unknown" else ""
    more = f"The nearest name is {nearest}." if nearest else last["text"] or "" if what in _HAVE_TEXT else ""
    others = sorted({name for row in rows for name in row.get("more_nodes") or ()} - {last["node"]})
    also = f"Refused by the same rule, too: {', '.join(others)}." if others else ""
    link = f"/errors/one?{urlencode({name: value for name, value in kind.address.items() if value})}"
    return Problem(
        what, "slow" if is_given_up or kind.klass == "other" else kind.klass, words,
        "dead" if is_given_up else "refusals" if what in _REFUSALS else "errors", "/dead" if is_given_up else link,
        more=f"{more} {also}".strip(),
        node=last["node"] or "", user=people[0]["user"], container=people[0]["container"], who=named_all(people),
        rule=last["rule"] or kind.rule,
        since_us=min(int(row["first_us"] or 0) for row in rows),
        last_us=int(last["at_us"] or 0), count=sum(int(row["count"] or 0) for row in rows),
        remedy=last["remedy"] or "", gateways=sorted({row["gateway"] for row in rows}),
    )  # fmt: skip


def sentence(row: Row) -> tuple[str, str]:
    """What is wrong, and the kind of problem that it is."""
    user, node = row["user"] or "a peer", row["node"] or "(no node)"
    container = row["container"] or row["address"] or "a peer"
    fault, answer, condition = row["fault"] or "", row["answer"] or "", row["condition"] or ""
    if row["what"] == GIVEN_UP:
        return f"{container} gives up messages of {node}.", GIVEN_UP
    if fault == "too-large-for-the-consumer":
        return f"{node} has messages that are larger than {container} takes.", fault
    if fault in ("failed-login", "login-unheard"):
        return f"User {user} cannot log in: wrong password, certificate or name.", "login-failed"
    if answer == "access-denied" or fault == "access-denied":
        verb = {"publish": "publish to", "subscribe": "subscribe to"}.get(row["direction"] or "", "use")
        return f"{user} may not {verb} {node}.", "denied"
    if condition == "amqp:not-found" and row["what"] == "attach":
        return f"{node} does not exist.", "node-unknown"
    if is_without_room(row):
        return f"The log has no room for messages of {container} to {node}.", "log-full"
    if answer == "capacity-reached":
        return f"{node} is full.", "node-full"
    if answer == "too-large" or fault == "message-too-large":
        return f"{container} sends messages that are too large for {node}.", "message-too-large"
    if fault == "sasl":
        return f"{row['address'] or 'A peer'} has no login in common with the gateway.", "login-failed"
    if fault == "half-open":
        return f"{row['address'] or 'A peer'} opens connections and does not say who it is.", "fault"
    if fault == "proxy-header":
        return f"{row['address'] or 'A peer'} does not say by the PROXY protocol whose connection it is.", "fault"
    if fault in _TOO_MANY:
        return f"{user if row['user'] else container} wants more {_TOO_MANY[fault]} than it may have.", "fault"
    if fault:
        return f"{container} broke the protocol: {fault}.", "fault"
    if row["outcome"]:
        return f"{node}: deliveries of {container} got {row['outcome']}.", "refused"
    return f"{node}: {row['what']} of {container} was refused.", "refused"


def is_without_room(row: Row) -> bool:
    """The log's own words: it is not the node's capacity that was reached."""
    return row["answer"] == "capacity-reached" and row["native"] not in (None, "capacity-reached")


def _node_names(gateways: Iterable[Standing]) -> set[str]:
    """Of a store that is still being counted there is no number of events, but its limit."""
    families = ("realmgate_node_events", "realmgate_node_events_limit")
    return {
        labels.get("node", "") for gateway in gateways for name in families for labels, _ in gateway.samples.all(name)
    }
