"""Nodes, durables and what became of deliveries, from the metrics of several gateways. Each row names its gateway.

A number that no gateway says is None: unknown, and never 0 instead.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from console.facts.errors import Shown
from console.facts.gateway import Gateway
from console.facts.levels import TOGETHER, levels_of
from console.facts.rises import MINUTE_US
from console.limits import MINUTES

_HELD: Final = {"events": "realmgate_node_events", "size_bytes": "realmgate_node_bytes"}
_LIMITS: Final = {"events_limit": "realmgate_node_events_limit", "limit_bytes": "realmgate_node_limit_bytes"}
_DURABLE: Final = ("consumers", "low_eid", "stored_events", "waiting_events", "unsettled_events", "delayed_events",
                   "hole_events", "settled_ranges")  # fmt: skip
Row = dict[str, Any]


def nodes(gateways: Sequence[Gateway], shown: Shown) -> list[Row]:
    """One row a node and gateway: its partitions summed, which share its capacity. First what is full, then by name."""
    rows: list[Row] = []
    for gateway in shown.of(gateways):
        sums = {column: gateway.samples.sums(name, "node") for column, name in _HELD.items()}
        sums |= {column: gateway.samples.highest(name, "node") for column, name in _LIMITS.items()}
        levels = levels_of(gateway.samples)
        oldest = _most(gateway, "realmgate_node_oldest_message_age_seconds", "node")
        moved = outcomes_of(gateway, shown)
        queues = {row["node"]: row for row in durables([gateway], shown) if row["durable"] == "queue"}
        letters = _letters(gateway, shown)
        consumers = gateway.samples.sums("realmgate_durable_consumers", "node")
        for name in sorted({*sums["events_limit"], *sums["events"]}):
            row: Row = {"node": name, "gateway": gateway.name, "together": name in TOGETHER}
            row |= {column: sums_of_column.get(name) for column, sums_of_column in sums.items()}
            row["used"] = _used(row)
            limits = row["events_limit"], row["limit_bytes"]
            row["full_in_s"] = gateway.levels.full_in_s(name, levels.get(name), limits, gateway.answered_us)
            row["oldest_s"] = oldest.get(name)
            counted, queue = moved.get(name, {}), queues.get(name, {})
            row["waiting"], row["unsettled"] = queue.get("waiting_events"), queue.get("unsettled_events")
            row["consumers"] = consumers.get(name, 0)
            row["in"], row["out"] = _accepted(counted, "in"), sum(counted.get("out", {}).values())
            row["refused"] = sum(counted.get("in", {}).values()) - row["in"]
            row["dead_letters"] = letters.get(name, 0)
            rows.append(row)
    return sorted(rows, key=lambda row: (-(row["used"] or 0) if (row["used"] or 0) >= 0.8 else 0, row["node"]))


def _used(row: Mapping[str, Any]) -> float | None:
    """The fuller of its two limits, 0 to 1; None: it has none, or it is unknown."""
    pairs = ((row["events"], row["events_limit"]), (row["size_bytes"], row["limit_bytes"]))
    return max((held / limit for held, limit in pairs if limit and held is not None), default=None)


def _most(gateway: Gateway, name: str, *labels: str) -> dict[str, float]:
    """Of the partitions the largest; 0 is nothing, and left out. Of a gateway that has no such metric: none."""
    highest: dict[str, float] = {}
    for labels_of_sample, number in gateway.samples.all(name):
        key = "\0".join(labels_of_sample.get(label, "") for label in labels)
        if number:
            highest[key] = max(highest.get(key, 0.0), number)
    return highest


def _letters(gateway: Gateway, shown: Shown) -> Counter[str]:
    counts: Counter[str] = Counter()
    for (node, _), count in gateway.rises.counted("letters", shown.now_us, shown.minutes).items():
        counts[node] += count
    return counts


def _accepted(counted: Mapping[str, Mapping[str, int]], direction: str) -> int:
    return sum(count for outcome, count in counted.get(direction, {}).items() if outcome in ("accepted", "none"))


def outcomes_of(gateway: Gateway, shown: Shown) -> dict[str, dict[str, dict[str, int]]]:
    """Deliveries that got their outcome in the time shown: node, direction, outcome, count."""
    by_node: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: {"in": {}, "out": {}})
    for (direction, node, outcome), count in gateway.rises.counted("deliveries", shown.now_us, shown.minutes).items():
        by_node[node].setdefault(direction, {})[outcome] = count
    return by_node


def outcomes(gateways: Iterable[Gateway], shown: Shown) -> list[Row]:
    """One row a node and direction, over the gateways; the most deliveries first."""
    sums: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for gateway in shown.of(gateways):
        for node, directions in outcomes_of(gateway, shown).items():
            for direction, counted in directions.items():
                sums[node, direction].update(counted)
    rows = [
        {"node": node, "direction": direction, "outcomes": dict(counted), "count": sum(counted.values())}
        for (node, direction), counted in sums.items()
        if counted
    ]
    return sorted(rows, key=lambda row: (-int(str(row["count"])), str(row["node"])))


def durables(gateways: Iterable[Gateway], shown: Shown) -> list[Row]:
    """One row a durable and gateway, its partitions summed; a queue's own state is its durable `queue`. First what
    holds a mark back, then what holds most."""
    rows: dict[tuple[str, str, str], Row] = {}
    for gateway in shown.of(gateways):
        oldest = _most(gateway, "realmgate_durable_oldest_message_age_seconds", "node", "durable")
        for column in _DURABLE:
            for labels, number in gateway.samples.all(f"realmgate_durable_{column}"):
                names = gateway.name, labels.get("node", ""), labels.get("durable", "")
                row = rows.setdefault(names, _durable(*names))
                row["oldest_s"] = oldest.get("\0".join(names[1:]))
                if column == "low_eid":
                    row["partitions"] += 1
                    row[column] = int(number)
                else:
                    row[column] = (row[column] or 0) + int(number)
    for row in rows.values():
        if row["partitions"] > 1:
            row["low_eid"] = None  # each partition has its own
    return sorted(
        rows.values(), key=lambda row: (-(row["hole_events"] or 0), -(row["stored_events"] or 0), row["node"])
    )


def _durable(gateway: str, node: str, durable: str) -> Row:
    return {
        "node": node,
        "durable": durable,
        "gateway": gateway,
        "partitions": 0,
        "oldest_s": None,
        **dict.fromkeys(_DURABLE),
    }


def letters(gateways: Iterable[Gateway], shown: Shown) -> list[Row]:
    """Messages that became dead letters, by the node that they were in, and cause."""
    rows: dict[tuple[str, str, str], Row] = {}
    for gateway in shown.of(gateways):
        counts = gateway.rises.counts(shown.now_us, shown.minutes)
        for key, total in gateway.rises.totals.items():
            if key[0] == "letters":
                row = {"node": key[1], "cause": key[2], "gateway": gateway.name}
                rows[gateway.name, key[1], key[2]] = {**row, "count": counts[key], "in_this_run": int(total)}
    return sorted(rows.values(), key=lambda row: (-row["count"], -row["in_this_run"], row["node"]))


def retries(gateways: Iterable[Gateway], shown: Shown) -> list[Row]:
    """Control calls to the log that were asked again, by the log's code: how many passed in the end."""
    retried, given_up, now = Counter[str](), Counter[str](), Counter[str]()
    for gateway in shown.of(gateways):
        counts = gateway.rises.counts(shown.now_us, shown.minutes)
        for key, total in gateway.rises.totals.items():
            if key[0] == "retries":
                retried[key[1]] += int(total)
                now[key[1]] += counts[key]
            elif key[0] == "given_up":
                given_up[key[1]] += int(total)
    return [
        {"code": code, "count": now[code], "in_this_run": total, "given_up": given_up[code]}
        for code, total in (retried + Counter(dict.fromkeys(given_up, 0))).most_common()
    ]


def known_from_us(gateways: Iterable[Gateway], shown: Shown) -> int:
    """Since when the counters of all that answer are known in the time shown."""
    begin_us = shown.now_us - shown.minutes * MINUTE_US
    return max((gateway.rises.known_us for gateway in shown.of(gateways) if gateway.answered_us), default=begin_us)


def before_of(gateways: Iterable[Gateway], shown: Shown) -> int | None:
    """What is known of the minutes before those that are shown, where nothing was counted: 0, or None for unknown."""
    since_us = shown.now_us - 2 * shown.minutes * MINUTE_US
    is_known = all(gateway.rises.known_us <= since_us for gateway in shown.of(gateways) if gateway.answered_us)
    return 0 if is_known and shown.minutes * 2 <= MINUTES else None


def hits(gateways: Sequence[Gateway], shown: Shown) -> dict[str, dict[str, int | None]]:
    """Of each rule, `TABLE.RULE`: deliveries that it decided about in the time shown, before (None: unknown), and in
    the runs; and the errors that peers got by it."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for gateway in shown.of(gateways):
        rises = gateway.rises
        for column, counted in (
            ("count", rises.counts(shown.now_us, shown.minutes)),
            ("before", rises.counts(shown.now_us, shown.minutes, shown.minutes)),
            ("in_this_run", rises.totals),
        ):
            for key, count in counted.items():
                if key[0] == "rules":
                    counts[f"{key[1]}.{key[2]}"][column] += int(count)
                elif key[0] == "errors" and column == "in_this_run":
                    counts[key[4]]["errors"] += int(count)
    before = before_of(gateways, shown)
    columns = ("count", "before", "in_this_run", "errors")
    return {
        rule: {name: before if name == "before" and before is None else numbers[name] for name in columns}
        for rule, numbers in counts.items()
    }
