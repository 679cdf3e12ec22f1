"""Which pages there are, by path. Another page is another entry here, and a template of that name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from console.pages.errors import errors, one_error, refusals
from console.pages.history import history
from console.pages.overview import find, overview
from console.pages.peers import connections, links
from console.pages.rules import rules
from console.pages.standing import gateways, reconciliation
from console.pages.stores import dead, durables, nodes
from console.pages.view import Document, View


class Page(NamedTuple):
    """`key`: what one types behind `g` to get there; `links`: it shows links or connections."""

    template: str
    title: str
    make: Callable[[View], Document]
    key: str = ""
    links: bool = False


PAGES: Final[Mapping[str, Page]] = {
    "/": Page("overview", "Overview", overview, "o", links=True),
    "/errors": Page("errors", "Errors", errors, "e"),
    "/history": Page("history", "History", history, "h"),
    "/refusals": Page("refusals", "Refusals", refusals, "r"),
    "/nodes": Page("nodes", "Nodes", nodes, "n", links=True),
    "/durables": Page("durables", "Durables", durables, "d"),
    "/links": Page("links", "Links", links, "l", links=True),
    "/connections": Page("connections", "Connections", connections, "i", links=True),
    "/dead": Page("dead", "Dead letters", dead, "x"),
    "/rules": Page("rules", "Rules", rules, "u"),
    "/reconciliation": Page("reconciliation", "Reconciliation", reconciliation, "c"),
    "/gateways": Page("gateways", "Gateways", gateways, "w"),
    "/find": Page("find", "Find", find, links=True),
    "/errors/one": Page("error", "", one_error),
}
