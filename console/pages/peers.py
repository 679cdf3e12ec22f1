"""`/links` and `/connections`: who is connected, has no credit, or holds what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from console.limits import LINKS_S, ROWS_SHOWN
from console.pages.view import Document, View, frame
from console.pages.words import iso

HELD_S: Final = 60.0
_SHOW: Final = ("no-credit", "holds")


def links(view: View) -> Document:
    """`?node=&q=&show=no-credit|holds&from=`: what needs a look comes first."""
    rows = [link_row(gateway.name, row) for gateway in view.shown.of(view.gateways) for row in gateway.links]
    node, show = view.query.get("node", ""), view.query.get("show", "")
    wanted = [row for row in _matching(rows, view) if node in ("", row["node"]) and _is_shown(row, show)]
    wanted.sort(key=lambda row: (-_weight(row), row["node"] or "", row["id"] or ""))
    return frame(
        view, "links", "Links", "Who is connected, has no credit, or holds what?",
        node=node, show=show if show in _SHOW else "", q=view.query.get("q", ""), read=_read(view),
        no_credit=sum(_is_shown(row, "no-credit") for row in rows), holds=sum(_is_shown(row, "holds") for row in rows),
        **_page(view, wanted, len(rows)),
    )  # fmt: skip


def connections(view: View) -> Document:
    """`?q=&from=`: the latest first."""
    rows = [
        connection_row(gateway.name, gateway.url, row)
        for gateway in view.shown.of(view.gateways)
        for row in gateway.connections
    ]
    wanted = sorted(_matching(rows, view), key=lambda row: -(row["since_us"] or 0))
    return frame(
        view, "connections", "Connections", "Who is connected, since when, with what?",
        q=view.query.get("q", ""), read=_read(view), **_page(view, wanted, len(rows)),
    )  # fmt: skip


def _page(view: View, rows: list[Document], count: int) -> Document:
    written = view.query.get("from", "")
    first = int(written) if written.isascii() and written.isdigit() and len(written) < 8 else 0
    following = first + ROWS_SHOWN
    return {
        "rows": rows[first:following],
        "from_row": first,
        "matching": len(rows),
        "count": count,
        "next_from": following if following < len(rows) else None,
        "previous_from": max(0, first - ROWS_SHOWN) if first else None,
    }


def _read(view: View) -> list[Document]:
    """When each gateway's rows were read: they are asked for less often than the rest."""
    return [
        {
            "gateway": gateway.name,
            "at": iso(gateway.links_us),
            "age_s": view.age_s(gateway.links_us),
            "every_s": LINKS_S,
            "is_cut": gateway.links_left_out,
        }
        for gateway in view.shown.of(view.gateways)
    ]


def _matching(rows: Iterable[Document], view: View) -> list[Document]:
    words = view.query.get("q", "").lower().split()
    if not words:
        return [*rows]
    return [row for row in rows if all(word in _text(row) for word in words)]


def _text(row: Mapping[str, Any]) -> str:
    return " ".join(value for value in row.values() if isinstance(value, str)).lower()


def link_row(gateway: str, row: Mapping[str, Any]) -> Document:
    counts = row["outcomes"]
    without, oldest = row["without_credit_s"] or 0, row["oldest_unsettled_s"]
    return {
        **row,
        "gateway": gateway,
        "connection": (row["id"] or "").rpartition(".")[0],
        "settled": sum(counts.values()),
        "accepted": counts.get("accepted", 0),
        "rejected": counts.get("rejected", 0),
        "released": counts.get("released", 0) + sum(n for name, n in counts.items() if name.startswith("modified")),
        "is_without_credit": row["direction"] == "subscribe" and without > 0,
        "holds": oldest is not None and oldest > HELD_S,
    }


def _is_shown(row: Mapping[str, Any], show: str) -> bool:
    if show == "no-credit":
        return bool(row["is_without_credit"])
    return bool(row["holds"]) if show == "holds" else True


def _weight(row: Mapping[str, Any]) -> float:
    return (row["oldest_unsettled_s"] or 0) + (row["without_credit_s"] or 0 if row["is_without_credit"] else 0)


def connection_row(gateway: str, url: str, row: Mapping[str, Any]) -> Document:
    return {
        **row,
        "gateway": gateway,
        "gateway_url": url,
        "since": iso(row["since_us"]),
        "client": row.get("client", ""),
    }
