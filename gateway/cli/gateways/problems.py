"""`realmgate problems`: what is wrong now at one or several gateways, on one screen. It is the console's verdict, made
from the same facts.

Exit codes: 0 nothing is wrong, 1 something is, 2 no gateway answered.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from gateway.cli.gateways.admin_client import AdminProblem, addresses, fetch, of_each
from gateway.cli.gateways.peer_arguments import PROBLEMS_SHOWN
from gateway.cli.output import printable, time_of, write_json
from gateway.config.settings import Settings
from gateway.verdict.answers import Row, read_health, read_page
from gateway.verdict.limits import ERROR_PAGES, LINK_ROWS, ROWS
from gateway.verdict.problem import Problem
from gateway.verdict.problems import open_words, problems
from gateway.verdict.reports import Report, Reports
from gateway.verdict.samples import WrongAnswer, read_samples
from gateway.verdict.standing import Standing
from native_backend.clock import SystemClock

_INDENT = " " * 15


def run(arguments: argparse.Namespace, settings: Settings | None, out: TextIO) -> int:
    """One command; its exit code."""
    urls = addresses(arguments.gateway, settings)
    answers, failed = of_each(urls, _read)
    now_us = SystemClock().epoch_us()
    gateways = [answers[url] if url in answers else _silent(url, failed[url], now_us) for url in urls]
    reports: list[Report] = Reports([arguments.reports]).read() if arguments.reports else []
    listed = problems(gateways, reports, now_us)
    if arguments.json:
        write_json(_document(gateways, listed), out)
    else:
        out.writelines(f"{line}\n" for line in _lines(gateways, listed, arguments.all))
    if not answers:
        return 2
    return int(bool(listed))


def _read(url: str) -> Standing:
    """All that a verdict needs of one gateway. Raises AdminProblem."""
    gateway, clock = Standing(url), SystemClock()
    try:
        gateway.health = read_health(fetch(url, "/health", {})[1])
        gateway.samples = read_samples(fetch(url, "/metrics", {})[1].decode("utf-8", "replace"))
        gateway.errors.extend(_rows(url, "errors", ERROR_PAGES))
        gateway.links = [*_rows(url, "links", LINK_ROWS // ROWS)]
    except WrongAnswer as error:
        raise AdminProblem(f"{url}: {error}") from None
    gateway.links_us = gateway.answered_us = clock.epoch_us()
    return gateway


def _rows(url: str, what: str, pages: int) -> Iterator[Row]:
    """Of so many pages at most. Raises AdminProblem, WrongAnswer."""
    after: str | None = None
    for _ in range(pages):
        head, rows = read_page(fetch(url, f"/api/{what}", {"limit": str(ROWS), "after": after})[1], what)
        yield from rows
        after = head["next"]
        if not after:
            return


def _silent(url: str, why: str, now_us: int) -> Standing:
    gateway = Standing(url)
    gateway.failed_us, gateway.problem = now_us, why
    return gateway


def _document(gateways: Sequence[Standing], listed: Sequence[Problem]) -> Mapping[str, Any]:
    return {
        "sentence": open_words(listed),
        "problems": [problem.document() for problem in listed],
        "gateways": [
            {
                "name": gateway.name,
                "url": gateway.url,
                "state": gateway.state,
                "run": gateway.run or None,
                "problem": gateway.problem,
            }
            for gateway in gateways
        ],
    }


def _lines(gateways: Sequence[Standing], listed: Sequence[Problem], all_of_them: bool) -> Iterator[str]:
    yield f"{open_words(listed)} {', '.join(f'{gateway.name}: {gateway.state}' for gateway in gateways)}"
    shown = listed if all_of_them else listed[:PROBLEMS_SHOWN]
    for problem in shown:
        yield from _of_one(problem, len(gateways) > 1)
    if len(shown) < len(listed):
        yield f"and {len(listed) - len(shown)} more: --all shows them"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _of_one(problem: Problem, names_gateways: bool) -> Iterator[str]:
    """What is wrong; where, who and by which rule; how often and since when; what to do."""
    yield f"{problem.klass:<15}{printable(' '.join(filter(None, (problem.words, problem.more))))}"
    facts = (
        f"node {problem.node}" if problem.node else "",
        problem.who,
        f"rule {problem.rule}" if problem.rule else "",
        f"at {', '.join(problem.gateways)}" if names_gateways and problem.gateways else "",
    )
    yield _INDENT + printable("; ".join(filter(None, facts)))
    times = (
        _times(problem.count) if problem.last_us else "",
        f"since {time_of(problem.since_us)}" if problem.since_us else "",
        f"last {time_of(problem.last_us)}" if problem.last_us else "",
    )
    if any(times):
        yield _INDENT + ", ".join(filter(None, times))
    yield f"{_INDENT}what to do: {printable(problem.remedy)}"
