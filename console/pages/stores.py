"""`/nodes`, `/durables` and `/dead`: what lies where, where each subscriber stands, what was given up."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from console.facts.errors import Board
from console.facts.letters import causes
from console.facts.realm import durables as durable_rows
from console.facts.realm import letters, outcomes
from console.facts.realm import nodes as node_rows
from console.limits import EXAMPLES_SHOWN
from console.pages.errors import example
from console.pages.peers import link_row
from console.pages.view import Document, View, frame
from console.pages.words import iso
from gateway.verdict.kinds import GIVEN_UP


def nodes(view: View) -> Document:
    """`?node=`: that node alone, with its durables, links and refusals."""
    rows = node_rows(view.gateways, view.shown)
    node = view.query.get("node", "")
    if node:
        return _node(view, node, [row for row in rows if row["node"] == node])
    return frame(
        view, "nodes", "Nodes", "What lies where, what is full?",
        node="", rows=rows, counting=_counting(view),
        full=[row["node"] for row in rows if (row["used"] or 0) >= 1],
    )  # fmt: skip


def _node(view: View, node: str, rows: list[Document]) -> Document:
    shown = view.shown
    errors = [
        {**row, "gateway": gateway.name} for gateway in shown.of(view.gateways) for row in gateway.errors
        if row["node"] == node
    ]  # fmt: skip
    title = node if rows else f"{node}: no gateway knows it"
    return frame(
        view, "nodes", title, "What lies in this node, who uses it, what went wrong?",
        node=node, rows=rows, counting=_counting(view), full=[],
        durables=[row for row in durable_rows(view.gateways, shown) if row["node"] == node],
        links=[
            link_row(gateway.name, row) for gateway in shown.of(view.gateways) for row in gateway.links
            if row["node"] == node
        ],
        outcomes=[row for row in outcomes(view.gateways, shown) if row["node"] == node],
        letters=[row for row in letters(view.gateways, shown) if row["node"] == node],
        errors=[example(row) for row in sorted(errors, key=lambda row: -(row["at_us"] or 0))[:20]],
    )  # fmt: skip


def _counting(view: View) -> int:
    """Stores without numbers: still being counted, or unreadable."""
    counting = (gateway.samples.one("realmgate_stores_counting") or 0 for gateway in view.shown.of(view.gateways))
    return int(sum(counting))


def durables(view: View) -> Document:
    """Queues are durables of their own name here, called `queue`."""
    rows = durable_rows(view.gateways, view.shown)
    return frame(
        view, "durables", "Durables", "Where does each subscriber stand?",
        rows=rows, counting=_counting(view), with_hole=[row for row in rows if row["hole_events"]],
    )  # fmt: skip


def dead(view: View) -> Document:
    """`?node=&where=&partition=&eid=`: what became a dead letter, by node and cause, and the letters of one node; what
    consumers gave up last, with their reasons."""
    rows = letters(view.gateways, view.shown)
    board = Board(view.gateways, view.shown)
    by_rule = [
        {"rule": row["decided_by"], "count": row["count"], "who": row["who"][:3], "nodes": row["nodes"]}
        for row in board.rows
        if "dead-letter" in row["decided_by"]
    ]
    given_up = [
        {**row, "gateway": gateway.name} for gateway in view.shown.of(view.gateways) for row in gateway.errors
        if row["what"] == GIVEN_UP
    ]  # fmt: skip
    given_up.sort(key=lambda row: -(row["at_us"] or 0))
    return frame(
        view, "dead", "Dead letters", "What was given up, where, and why?",
        rows=rows, by_rule=by_rule, letters=_letters(view), commands=_commands(rows, view.stored.asked.node),
        given_up=[example(row) for row in given_up[:EXAMPLES_SHOWN]],
        count=sum(row["count"] for row in rows), in_this_run=sum(row["in_this_run"] for row in rows),
    )  # fmt: skip


def _letters(view: View) -> Document:
    """As they were read, with how old that is."""
    stored, request = view.stored, view.stored.asked
    partitions = next((node["partitions"] for node in stored.nodes if node["node"] == request.node), 1)
    return {
        "can_read": stored.can_read,
        "at": iso(stored.at_us),
        "age_s": view.age_s(stored.at_us),
        "problem": stored.problem,
        "nodes": [*stored.nodes],
        "node": request.node, "where": request.where, "partition": request.partition, "from_eid": request.eid,
        "partitions": partitions,
        "causes": causes(stored.rows),
        "rows": [*stored.rows],
        "next_eid": stored.next,
    }  # fmt: skip


def _commands(rows: Sequence[Document], dead_node: str) -> list[Document]:
    """To copy: none that cannot be undone comes first."""
    dead = quote(dead_node) if dead_node else "DEAD"
    where = f"amqp.dead_letter_node = '{rows[0]['node']}'" if rows else "amqp.dead_letter_node = 'NODE'"
    peek, resend = f"realmgate queue peek {dead}", f"realmgate queue resend {dead} --to-origin"
    return [
        {"about": "show the letters: cause, reason, origin, attempts, age", "command": peek},
        {"about": "those of one node", "command": f"{peek} --where {quote(where)}"},
        {"about": "what would go back", "command": f"{resend} --dry-run"},
        {"about": "send them back, when the cause is mended", "command": resend},
    ]
