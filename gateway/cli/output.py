"""What commands print: tables and JSON, names that break no terminal, and the question before a destroying command."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from native_backend.nodes.broken_nodes import Broken
    from native_backend.nodes.node import Node


def printable(name: str) -> str:
    """A name may hold anything: what would break a line or a terminal is escaped."""
    return name if name.isprintable() else json.dumps(name)


def time_of(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write_json(document: Any, out: TextIO, indent: int | None = 2) -> None:
    """`indent` None: in one line, for programs only."""
    json.dump(document, out, indent=indent)
    out.write("\n")


def write_table(
    titles: tuple[str, ...], rows: Sequence[tuple[str, ...]], out: TextIO, notes: Sequence[str] = ()
) -> None:
    """`notes`: one for each row, below it; empty: none."""
    widths = [max(len(cell) for cell in column) for column in zip(titles, *rows, strict=True)]
    for row, note in zip((titles, *rows), ("", *(notes or [""] * len(rows))), strict=True):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        out.write("  ".join(cells).rstrip() + "\n")
        if note:
            out.write(f"  {note}\n")


def confirmed(question: str, yes: bool, out: TextIO) -> bool:
    """Asks on a terminal, unless `yes`; a script has decided already."""
    if yes or not sys.stdin.isatty():
        return True
    out.write(f"{question} [y/N] ")
    out.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def problem_of(broken: Broken | None) -> dict[str, Any]:
    """The key `problem` of a node's document; null where there is none."""
    if broken is None:
        return {"problem": None}
    return {"problem": {"kind": f"topic-{broken.how}", "detail": broken.detail, "remedy": broken.remedy}}


def warn_of_broken(node: Node, broken: Broken | None) -> None:
    if broken is not None:
        print_error(f"warning: {node.kind} {printable(node.name)}: {broken.detail}: {broken.remedy}")


def print_error(text: str) -> int:
    """To stderr; the exit code of what is not so."""
    sys.stderr.write(f"realmgate: {text}\n")
    return 1
