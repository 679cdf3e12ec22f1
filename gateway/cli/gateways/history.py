"""`realmgate history`: what serving gateways say that was counted earlier, by minute or longer, also by runs before
theirs; with `--stored` what lies in the realm itself, without a gateway. A time without a record is named, and is
never 0.

Exit codes: 0 done, 1 a gateway did not answer (the others are shown), 2 none did. Errors: `AdminProblem`, printed by
`gateway.cli.main` (exit code 2). Microseconds since 1970.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from math import inf
from typing import Any, Final, TextIO

from gateway.cli.gateways.admin_client import AdminProblem, Query, addresses, of_each, rows, tell, unreached
from gateway.cli.gateways.stored_history import STORED, stored_pages
from gateway.cli.output import printable, time_of, write_json, write_table
from gateway.config.settings import Settings
from gateway.verdict.history import MINUTE_US, OTHER, STEPS_US, HistoryRow, Sums, by_slot, distinct, history_row
from gateway.verdict.history_gaps import Gap, gaps
from gateway.verdict.standing import WAITS
from native_backend.clock import SystemClock

PAGES: Final = 100
"""Of one gateway: 150,000 records, a quarter of a year."""
_LINES: Final = 72
"""Where no step is named, the smallest one that needs no more of them."""
_HOUR_US: Final = 60 * MINUTE_US
_MINUTES_MAX: Final = 366 * 24 * 60
_TOP: Final = 10
_COLUMNS: Final = {
    "IN": "in", "REFUSED": "refused", "OUT": "out", "REJECTED": "rejected", "RETURNED": "returned", "FATAL": "fatal",
    "TRANSIENT": "transient", "INDETERMINATE": "indeterminate", "DEAD LETTERS": "dead_letters",
}  # fmt: skip
_OF_ALL: Final = {"FAULTS": "faults", "CONNECTED": "new_connections"}
"""Not counted by node."""
_P99: Final = "ACCEPT P99"


@dataclass(frozen=True, slots=True)
class Asked:
    """A time of whole steps; `until_us` may be later than now. `node` empty: all."""

    since_us: int
    until_us: int
    step: str
    node: str = ""

    @property
    def minutes(self) -> int:
        return -(-(self.until_us - self.since_us) // MINUTE_US)


@dataclass(frozen=True, slots=True)
class Answer:
    """`document`: the gateway and its rows, as it answered. `is_cut`: it has more than `PAGES`."""

    document: Mapping[str, Any]
    rows: Sequence[HistoryRow]
    gaps: Sequence[Gap]
    is_cut: bool

    @property
    def counted_us(self) -> int:
        """The end of its last record; 0: it has none."""
        return max((row.end_us for row in self.rows), default=0)


def run(arguments: argparse.Namespace, settings: Settings | None, out: TextIO) -> int:
    """One command; its exit code."""
    request = asked_of(arguments, SystemClock().epoch_us())
    if arguments.stored:
        return _show(arguments, request, [_stored(arguments, settings, request)], {}, out)
    urls = addresses(arguments.gateway, settings)
    read, problems = of_each(urls, lambda url: _read(url, request))
    by_run = {answer.document["run"]: answer for answer in reversed(read.values())}  # one that was named twice
    kept = distinct({run: answer.rows for run, answer in by_run.items()})
    answers = [answer for answer in read.values() if any(answer is by_run[run] for run in kept)]
    code = _show(arguments, request, answers, problems, out)
    if not read and settings is not None:
        sys.stderr.write("realmgate: without a gateway: realmgate history --stored\n")
    return code


def _show(
    arguments: argparse.Namespace, request: Asked, answers: list[Answer], problems: Mapping[str, str], out: TextIO
) -> int:
    """The exit code."""
    if arguments.json:
        documents = [{**answer.document, "gaps": [*map(asdict, answer.gaps)]} for answer in answers]
        empty: dict[str, Any] = {"history": [], "known_us": None, "next": None, "gaps": []}
        write_json({"gateways": documents + unreached(problems, **empty)}, out, None if arguments.stored else 2)
    else:
        _write(request, answers, out)
    return tell(problems, len(answers))


def asked_of(arguments: argparse.Namespace, now_us: int) -> Asked:
    """Raises AdminProblem."""
    until_us = now_us if arguments.until is None else arguments.until
    since_us = until_us - _HOUR_US if arguments.since is None else arguments.since
    if since_us >= until_us:
        raise AdminProblem(f"--until {time_of(until_us)} is not later than --since {time_of(since_us)}")
    fitting = (step for step, step_us in STEPS_US.items() if until_us - since_us <= _LINES * step_us)
    step = arguments.by or next(fitting, [*STEPS_US][-1])
    step_us = STEPS_US[step]
    request = Asked(since_us // step_us * step_us, -(-until_us // step_us) * step_us, step, arguments.node or "")
    if request.minutes > _MINUTES_MAX:
        raise AdminProblem("more than a year: choose a later --since")
    return request


def _read(url: str, request: Asked) -> Answer:
    """Raises AdminProblem."""
    query: Query = {"since": str(request.since_us), "minutes": str(request.minutes), "step": request.step}
    return _answer([page for page, _ in islice(rows(url, "/api/history", "history", query), PAGES)], url, request)


def _stored(arguments: argparse.Namespace, settings: Settings | None, request: Asked) -> Answer:
    """Raises AdminProblem."""
    if arguments.gateway or settings is None:
        raise AdminProblem("--stored reads a realm itself: name its configuration by --config, and no --gateway")
    pages = stored_pages(settings, request.since_us, request.until_us, request.step, PAGES)
    return _answer(pages, settings.realm.place, request)


def _answer(pages: Sequence[Mapping[str, Any]], url: str, request: Asked) -> Answer:
    head, last = pages[0], pages[-1]
    entries = [row for page in pages for row in page["history"]]
    document = {**last, "url": url, "history": entries, "known_us": head["known_us"]}
    counted = [history_row(row) for row in entries]
    is_cut = last["next"] is not None
    end_us = min(request.until_us, last["at_us"])
    if is_cut:
        end_us = min(end_us, counted[-1].end_us)
    waits = last["state"] in WAITS
    missing = [] if waits else gaps(counted, request.since_us, end_us, head["known_us"])
    return Answer(document, counted, missing, is_cut)


def _write(request: Asked, answers: Sequence[Answer], out: TextIO) -> None:
    several = len(answers) > 1
    for answer in answers:
        out.writelines(f"{line}\n" for line in _of_gateway(answer))
    counted = [row for answer in answers for row in answer.rows]
    sums = {
        slot: slot_sums.of_node(request.node) for slot, slot_sums in by_slot(counted, STEPS_US[request.step]).items()
    }
    missing = [(gap, answer.document["url"] if several else "") for answer in answers for gap in answer.gaps]
    early, notes = _placed([*sums], sorted(missing))
    out.writelines(f"  {line}\n" for line in early)
    whole = Sums(counted).of_node(request.node)
    lines = [(time_of(slot), *_cells(slot_sums, bool(request.node))) for slot, slot_sums in sums.items()]
    if lines:
        lines.append(("TOTAL", *_cells(whole, bool(request.node))))
        titles = _COLUMNS if request.node else (*_COLUMNS, *_OF_ALL, _P99)
        write_table((f"BY {request.step.upper()}", *titles), lines, out, [*notes, ""])
    elif not early:
        out.write("no record of this time\n")
    out.writelines(f"{line}\n" for line in _remarks(request, answers, Sums(counted)))
    if not request.node:
        _most(("NODE", *_COLUMNS), [(printable(row["node"] or "-"), *_numbers(row)) for row in whole.nodes()], out)
    columns = ("ERRORS", "CLASS", "CONDITION", "CODE", "RULE", "NODE")
    _most(columns, [_error(row) for row in whole.errors()], out)


def _of_gateway(answer: Answer) -> Iterator[str]:
    document = answer.document
    if document["state"] == STORED:
        yield f"{document['url']}: read out of the realm itself, without a gateway, {time_of(document['at_us'])}"
        return
    waits = ": it has no history to answer from yet" if document["state"] in WAITS else ""
    yield f"gateway {document['run']} at {document['url']}: {document['state']}, {time_of(document['at_us'])}{waits}"


def _placed(slots: Sequence[int], missing: Iterable[tuple[Gap, str]]) -> tuple[list[str], list[str]]:
    """Gaps in words: those before the first line, and those below each line, which begin in it or behind it."""
    early: list[str] = []
    below: dict[int, list[str]] = {slot: [] for slot in slots}
    for gap, url in missing:
        place = max((slot for slot in slots if slot <= gap.begin_us), default=None)
        (early if place is None else below[place]).append(_gap_words(gap, url))
    return early, ["\n  ".join(words) for words in below.values()]


def _gap_words(gap: Gap, url: str) -> str:
    source = f" of {url}" if url else ""
    return f"no record{source} from {time_of(gap.begin_us)} to {time_of(gap.end_us)}: {gap.words}"


def _cells(sums: Sums, of_node: bool) -> tuple[str, ...]:
    figures, p99_ms = sums.figures(), sums.accept_p99_ms()
    if of_node:
        return _numbers(figures)
    more = (f"{figures[name]:,}" for name in _OF_ALL.values())
    return (*_numbers(figures), *more, _p99_words(p99_ms))


def _p99_words(p99_ms: float | None) -> str:
    if p99_ms is None:
        return "-"
    return f"{p99_ms:g} ms" if p99_ms < inf else "> 10 s"


def _numbers(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(f"{row[name]:,}" for name in _COLUMNS.values())


def _error(row: Mapping[str, Any]) -> tuple[str, ...]:
    names = (printable(row[name] or "-") for name in ("class", "condition", "code", "rule", "node"))
    return (f"{row['count']:,}", *names)


def _remarks(request: Asked, answers: Sequence[Answer], whole: Sums) -> Iterator[str]:
    """What the numbers do not have in them."""
    for answer in answers:
        at = f" at {answer.document['url']}" if len(answers) > 1 else ""
        if answer.is_cut:
            yield f"only the first {PAGES} pages{at}, until {time_of(answer.counted_us)}: choose a shorter time"
        elif answer.counted_us:
            yield f"counted until {time_of(answer.counted_us)}{at}; the minute under way is not in it"
    if missed := whole.numbers["missed"]:
        yield f"{missed} records were not stored at once: their counts are in the next one"
    if request.node and whole.unnamed:
        yield f"{whole.unnamed:,} deliveries are counted under `{OTHER}`, without a name: some may be of {request.node}"


def _most(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]], out: TextIO) -> None:
    if rows:
        out.write("\n")
        write_table(titles, rows[:_TOP], out)
    if len(rows) > _TOP:
        out.write(f"and {len(rows) - _TOP} more: --json has all\n")
