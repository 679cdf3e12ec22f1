"""`realmgate connections`, `links`, `connection close`, `errors` and `denials`: what serving gateways say of their
peers, asked at their admin addresses.

Exit codes: 0 done, 1 a gateway did not answer (the others are shown), 2 none did. Errors: `AdminProblem`, printed by
`gateway.cli.main` (exit code 2).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, TextIO

from gateway.cli.audit.behalf import refuse_what_may_not_be
from gateway.cli.audit.who import who_am_i
from gateway.cli.gateways.admin_client import AdminProblem, Query, addresses, ask, of_each, rows, tell, unreached
from gateway.cli.output import print_error, printable, time_of, write_json, write_table
from gateway.config.settings import Settings
from native_backend.nodes.node import NodeError

Row = dict[str, Any]
_ERRORS = ("TIME", "WHAT", "COUNT", "USER", "CONTAINER", "ADDRESS", "NODE", "CONDITION", "RULE", "DELIVERY", "TEXT")
_CONNECTIONS = ("ID", "USER", "CONTAINER", "ADDRESS", "SINCE", "CLIENT", "LINKS", "IN", "OUT", "UNSETTLED", "STATE")
_LINKS = (
    "ID",
    "NODE",
    "DIRECTION",
    "NAME",
    "USER",
    "CONTAINER",
    "CREDIT",
    "NO CREDIT",
    "UNSETTLED",
    "OLDEST",
    "OUTCOMES",
)


def run(arguments: argparse.Namespace, settings: Settings | None, out: TextIO) -> int:
    """One command; its exit code."""
    urls = addresses(arguments.gateway, settings)
    if arguments.command == "connection":
        if arguments.behalf:
            _refuse_closing(arguments, settings)
        return _close(arguments, urls, out)
    if arguments.command == "connections":
        query: Query = {"user": arguments.user, "container": arguments.container}
        return _list(arguments, urls, out, "connections", _CONNECTIONS, _connection, query)
    if arguments.command == "links":
        query = {"user": arguments.user, "container": arguments.container, "node": arguments.node}
        return _list(arguments, urls, out, "links", _LINKS, _link, query)
    return _list(arguments, urls, out, "errors", _ERRORS, _error, _errors_asked(arguments))


def _list(
    arguments: argparse.Namespace,
    urls: list[str],
    out: TextIO,
    what: str,
    titles: tuple[str, ...],
    cells: Callable[[Row], tuple[str, ...]],
    query: Query,
) -> int:
    """All gateways, one table; its exit code."""
    answers, problems = of_each(urls, lambda url: [*rows(url, f"/api/{what}", what, query)])
    by_run: dict[str, Row] = {}
    for url, pages in answers.items():
        gateway = {**pages[-1][0], what: [row for _, page in pages for row in page], "url": url}
        by_run.setdefault(gateway["run"], gateway)
    if arguments.json:
        gateways = [{**answer, "next": None} for answer in by_run.values()]
        write_json({"gateways": gateways + unreached(problems, **{what: [], "next": None})}, out)
        return tell(problems, len(answers))
    for answer in by_run.values():
        out.write(f"gateway {answer['run']} at {answer['url']}: {answer['state']}, {time_of(answer['at_us'])}\n")
    shown = [row for answer in by_run.values() for row in answer[what]]
    write_table(titles, [cells(row) for row in shown], out, _remedies(shown) if what == "errors" else ())
    left_out = sum(answer.get("left_out", 0) for answer in by_run.values())
    if left_out:
        out.write(f"and {left_out} that have no entry\n")
    return tell(problems, len(answers))


def _remedies(errors: list[Row]) -> list[str]:
    """What to do, below each row; once where rows that follow one another have the same."""
    remedies = [printable(error["remedy"]) for error in errors]
    return [
        "" if at + 1 < len(remedies) and remedies[at + 1] == remedy else f"what to do: {remedy}"
        for at, remedy in enumerate(remedies)
    ]


def _errors_asked(arguments: argparse.Namespace) -> Query:
    since = None if arguments.since is None else str(arguments.since)
    if arguments.command == "denials":
        return {"user": arguments.user, "since": since, "answer": "access-denied"}
    return {
        "user": arguments.user,
        "container": arguments.container,
        "since": since,
        "node": arguments.node,
        "condition": arguments.condition,
    }


def _refuse_closing(arguments: argparse.Namespace, settings: Settings | None) -> None:
    """Raises AdminProblem: the user may not, or it cannot be known."""
    assert settings is not None, "with --as the configuration is looked for, whatever gateway is named"
    try:
        refuse_what_may_not_be(settings, arguments, [("manage", "")], f"close connection {arguments.id}")
    except NodeError as error:
        raise AdminProblem(str(error)) from None


def _close(arguments: argparse.Namespace, urls: list[str], out: TextIO) -> int:
    run = arguments.id.partition(".")[0]
    problems: dict[str, str] = {}
    if len(urls) > 1:
        answers, problems = of_each(urls, lambda url: ask(url, "/api/connections", {"limit": "1"})[0]["run"])
        urls = [url for url, gateway_run in answers.items() if gateway_run == run][:1]
    for url in urls:
        query = {"id": arguments.id, "reason": arguments.reason}
        [gateway] = ask(url, "/api/connections/close", query, "POST", who_am_i(arguments.behalf))
        closed = gateway["closed"]
        names = [printable(closed[key] or "-") for key in ("user", "container", "address")]
        out.write(f"closed {closed['id']}: user {names[0]}, container {names[1]}, from {names[2]}\n")
        return 0
    print_error(f"none of the gateways that answer has the run {run}; realmgate connections shows their connections")
    return tell(problems, len(answers)) or 1


def _connection(row: Row) -> tuple[str, ...]:
    names = [printable(row[key] or "-") for key in ("user", "container", "address")]
    client = printable(" ".join(row["client"][key] for key in ("product", "version")).strip() or "-")
    counts = [str(sum(row["outcomes"][direction].values())) for direction in ("publish", "subscribe")]
    return (
        row["id"],
        *names,
        time_of(row["since_us"]),
        client,
        str(row["links"]),
        *counts,
        str(row["unsettled"]),
        row["state"],
    )


def _link(row: Row) -> tuple[str, ...]:
    node = printable(row["node"] or f"({row['kind']})") + (f" {printable(row['durable'])}" if row["durable"] else "")
    names = [printable(row[key] or "-") for key in ("name", "user", "container")]
    outcomes = ", ".join(f"{name} {count}" for name, count in sorted(row.get("outcomes", {}).items())) or "-"
    without, oldest = row.get("without_credit_s"), row["oldest_unsettled_s"]
    return (
        row["id"], node, row["direction"], *names, str(row["credit"]), f"{without:.0f} s" if without else "-",
        str(row["unsettled"]), f"{oldest:.0f} s" if oldest is not None else "-", outcomes,
    )  # fmt: skip


def _error(row: Row) -> tuple[str, ...]:
    what = f"{row['what']} {row['fault'] or row['outcome'] or row['direction'] or ''}".rstrip()
    count = str(row["count"]) + (f" +{row['more']}" if row["more"] else "")
    names = [printable(row[key] or "-") for key in ("user", "container", "address", "node")]
    if len({example["container"] for example in row["examples"]}) > 1:
        names[1] = f"{printable(row['examples'][-1]['container'] or '-')} and others"
    known = [row[key] or "-" for key in ("condition", "rule", "delivery")]
    return (time_of(row["at_us"]), what, count, *names, *known, printable(row["text"]))
