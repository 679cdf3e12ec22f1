"""`realmgate top`: how many deliveries a second went over each node and link, from two readings of /api/links.

A link that ended between the readings is not counted. Exit codes: 0 done, 1 a gateway did not answer both times (the
others are shown), 2 none did, so that it ends. Errors: `AdminProblem`, printed by `gateway.cli.main` (exit code 2).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, TextIO

from gateway.cli.gateways.admin_client import addresses, of_each, rows, tell, unreached
from gateway.cli.output import printable, time_of, write_json, write_table
from gateway.config.settings import Settings

_NODES: Final = ("NODE", "PUBLISHERS", "CONSUMERS", "IN/S", "OUT/S", "UNSETTLED")
_LINKS: Final = ("LINK", "NODE", "DIRECTION", "USER", "CONTAINER", "RATE/S", "CREDIT", "UNSETTLED")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """All links of one gateway at a time of its own clock; in `at_us` of a link, that of its page."""

    run: str
    url: str
    state: str
    at_us: int
    links: Mapping[str, Row]


@dataclass(frozen=True, slots=True)
class LinkRate:
    """Deliveries of one link that got an outcome, a second."""

    id: str
    node: str
    direction: str
    user: str | None
    container: str | None
    rate: float
    credit: int
    unsettled: int


@dataclass(frozen=True, slots=True)
class NodeRate:
    """The links of a node, both directions: publishers bring in, consumers take out."""

    node: str
    publishers: int
    consumers: int
    rate_in: float
    rate_out: float
    unsettled: int


def run(
    arguments: argparse.Namespace,
    settings: Settings | None,
    out: TextIO,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """One command; its exit code."""
    urls = addresses(arguments.gateway, settings)
    before, problems = of_each(urls, read)
    code = shown = 0
    while before and (not arguments.times or shown < arguments.times):
        pause(arguments.interval)
        out.write("\n" if shown and not arguments.json else "")
        after, problems = of_each(urls, read)
        both = [url for url in after if url in before]
        late = {url: f"{url} has answered once only: its rates come next" for url in after if url not in before}
        rates = [(after[url], links_between(before[url], after[url])) for url in both]
        _write(arguments, rates, problems | late, out)
        out.flush()
        code = max(code, tell(problems | late, len(both)))
        before, problems, shown = after, {}, shown + 1
    return max(code, tell(problems, len(before)))


def read(url: str) -> Reading:
    """Every page. Raises AdminProblem."""
    links: dict[str, Row] = {}
    gateway: Row = {}
    for gateway, page in rows(url, "/api/links", "links", {}):
        links |= {row["id"]: {**row, "at_us": gateway["at_us"]} for row in page}
    return Reading(gateway["run"], url, gateway["state"], gateway["at_us"], links)


def links_between(before: Reading, after: Reading) -> list[LinkRate]:
    """The fastest first. A link that is new counts from nothing, and so does every link of another run."""
    earlier = before.links if before.run == after.run else {}
    rates = [_link(row, earlier.get(row["id"], {"at_us": before.at_us})) for row in after.links.values()]
    return sorted(rates, key=lambda link: (-link.rate, link.node, link.id))


def _link(now: Row, then: Row) -> LinkRate:
    seconds = max(now["at_us"] - then["at_us"], 1) / 1e6
    return LinkRate(
        id=now["id"],
        node=now["node"] or f"({now['kind']})",
        direction=now["direction"],
        user=now["user"],
        container=now["container"],
        rate=(_ended(now) - _ended(then)) / seconds,
        credit=now["credit"],
        unsettled=now["unsettled"],
    )


def _ended(row: Row) -> int:
    return sum(row.get("outcomes", {}).values())


def nodes_of(links: Iterable[LinkRate]) -> list[NodeRate]:
    """The fastest first."""
    by_node: dict[str, list[LinkRate]] = {}
    for link in links:
        by_node.setdefault(link.node, []).append(link)
    rates = [_node(name, samples) for name, samples in by_node.items()]
    return sorted(rates, key=lambda node: (-node.rate_in - node.rate_out, node.node))


def _node(name: str, links: Sequence[LinkRate]) -> NodeRate:
    incoming = [link.rate for link in links if link.direction == "publish"]
    outgoing = [link.rate for link in links if link.direction != "publish"]
    unsettled = sum(link.unsettled for link in links)
    return NodeRate(name, len(incoming), len(outgoing), sum(incoming), sum(outgoing), unsettled)


def _write(
    arguments: argparse.Namespace,
    readings: list[tuple[Reading, list[LinkRate]]],
    problems: Mapping[str, str],
    out: TextIO,
) -> None:
    nodes = nodes_of(link for _, links in readings for link in links)
    if arguments.json:
        gateways = [
            {"run": poll.run, "url": poll.url, "at_us": poll.at_us, "state": poll.state, "links": [*map(asdict, links)]}
            for poll, links in readings
        ] + unreached(problems, links=[])
        write_json({"gateways": gateways, "nodes": [asdict(node) for node in nodes]}, out)
        return
    for poll, _ in readings:
        out.write(f"gateway {poll.run} at {poll.url}: {poll.state}, {time_of(poll.at_us)}\n")
    write_table(_NODES, [_node_cells(node) for node in nodes], out)
    out.write("\n")
    fastest = sorted((link for _, links in readings for link in links), key=lambda link: -link.rate)
    write_table(_LINKS, [_link_cells(link) for link in fastest[: arguments.links]], out)
    if len(fastest) > arguments.links:
        out.write(f"and {len(fastest) - arguments.links} slower ones\n")


def _node_cells(node: NodeRate) -> tuple[str, ...]:
    counts = (str(node.publishers), str(node.consumers))
    return (printable(node.node), *counts, f"{node.rate_in:.1f}", f"{node.rate_out:.1f}", str(node.unsettled))


def _link_cells(link: LinkRate) -> tuple[str, ...]:
    names = [printable(name or "-") for name in (link.user, link.container)]
    numbers = (f"{link.rate:.1f}", str(link.credit), str(link.unsettled))
    return (link.id, printable(link.node), link.direction, *names, *numbers)
