"""What was checked, on how much, and what could not be checked, and why. What no record tells stands below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from reconciliation.model.classes import CLASSES
from reconciliation.report.pieces.html import folded, plural, table
from reconciliation.report.result import Result

_LINES = 20
NEVER = (
    "bodies of events: no checksum of them is recorded; ledgers of clients can have one (--ledgers)",
    "transactions as a whole (torn, aborted or read before their end): no record has the number of one; what is "
    "missing of one is found as P1, A1 or A2",
    "deliveries that stay unsettled, and delays: no record says when an event was given out",
    "rights: attaches that were allowed are recorded nowhere",
)
"""The same list as in docs/reconciliation.md."""


@dataclass(frozen=True, slots=True)
class Check:
    """`of`: on how much, in words. `left`: what of it could not be checked; empty: all was."""

    question: str
    codes: tuple[str, ...]
    of: str
    left: Sequence[str] = ()


def checks(result: Result) -> Iterator[str]:
    counts = {report.code: report.count for report in result.findings.classes}
    yield '<h2 id="checked">What was checked, and what could not be</h2>'

    def row(check: Check) -> list[str]:
        codes = [code for code in check.codes if counts.get(code)]
        links = ", ".join(f'<a href="#{code}">{code}</a> {counts[code]:,}' for code in codes)
        nothing = '<span class="good">nothing</span>'
        if check.left:
            nothing = '<span class="warn">nothing, as far as it was checked</span>'
        what = f'<span class="bad">{links}</span>' if links else nothing
        names = ", ".join(f"{CLASSES[code].name} ({code})" for code in check.codes)
        left = "".join(f'<small class="warn">{escape(words)}</small>' for words in check.left[:_LINES])
        if len(check.left) > _LINES:
            left += f'<small class="warn">and {len(check.left) - _LINES:,} more</small>'
        return [f"<b>{escape(check.question)}</b><small>{escape(names)}</small>", escape(check.of), what, left or "-"]

    columns = ("question", "on", "found", "could not be checked")
    yield from table("checks", columns, map(row, all_checks(result)), "stack")
    unread = [gap.words for gap in result.landed.extent.unread]
    if unread:
        listed = "".join(f"<li>{escape(words)}</li>" for words in unread[:_LINES])
        yield f'<p class="warn">{plural(len(unread), "source")} could not be read:</p><ul>{listed}</ul>'
    yield from folded("Never checked, as no record tells", [f"<ul>{''.join(f'<li>{x}</li>' for x in NEVER)}</ul>"])


def all_checks(result: Result) -> list[Check]:
    return [*_of_deliveries(result), *_of_events(result), *_of_the_realm(result), *_of_ledgers(result)]


def _of_deliveries(result: Result) -> Iterator[Check]:
    tallies, sheet = result.judgement.tallies, result.sheet
    publishes = sum(tally.count for tally in tallies if tally.direction == "publish")
    others = sum(tally.count for tally in tallies if tally.direction != "publish")
    unseen = [f"{sum(node.unread for node in sheet.nodes):,} answered as stored in what could not be read"]
    unproven = [f"{sum(node.unproven for node in sheet.nodes):,} events without evidence of their publishing"]
    left = [words for words in unseen + unproven if not words.startswith("0 ")]
    yield Check(
        "Is each message that was accepted in its store, once, in order, and no other?", ("P1", "P2", "P3", "P4", "P6"),
        f"{publishes:,} publishes", left,
    )  # fmt: skip
    yield Check(
        "Does the journal hold what consumers were told?", ("A1", "A2", "A6"), plural(others, "settlement"),
        _unread(result, "journal"),
    )  # fmt: skip
    yield Check(
        "Is each outcome the one of its rule, by the tables of then?", ("A3", "G2"),
        f"{publishes + others:,} outcomes, {plural(len(result.judgement.catalog.digests), 'set')} of tables",
        _unread(result, "tables"),
    )  # fmt: skip


def _of_events(result: Result) -> Iterator[Check]:
    catalog, sheet, extent = result.judgement.catalog, result.sheet, result.landed.extent
    entitled = sum(durable.entitled for durable in sheet.durables)
    hidden = [f"{plural(len(catalog.hidden), 'store')}: some events could not be read"] if catalog.hidden else []
    yield Check(
        "Has each event of a queue or durable ended once, or is it there?", ("A4", "A5", "A13", "S1"),
        f"{entitled:,} events of {len(sheet.durables):,} queues and durables",
        hidden + _unread(result, "journal"),
    )  # fmt: skip
    trimmed = sum(1 for first in catalog.first_kept.values() if first)
    cut = [f"{plural(trimmed, 'trimmed store')}: of copies there none counts as missing"] if trimmed else []
    whole = catalog.journal_whole and not extent.journal_growing
    surplus = [] if whole else ["the journal is not whole, or goes on: no copy counts as one too many"]
    copies = sum(result.judgement.copies.values())
    yield Check("Are dead letters and moved events where they went?", ("A7",), f"{copies:,} copies", cut + surplus)


def _of_the_realm(result: Result) -> Iterator[Check]:
    catalog, judgement = result.judgement.catalog, result.judgement
    cut = [] if catalog.journal_whole else ["the journal's beginning is gone: what was before is as snapshots say"]
    positions = len(result.landed.extent.positions)
    yield Check(
        "Do snapshots and group offsets agree with the journal?", ("A9", "A10"),
        f"{len(catalog.snapshots):,} snapshots, {positions:,} group offsets", cut,
    )  # fmt: skip
    names = sorted(catalog.known.changed)
    changed = [f"{plural(len(names), 'node')} with properties that were changed: their own limits"] if names else []
    yield Check(
        "Had the realm a reason for what it ended, and room for what it took?", ("S2", "S4"),
        plural(len({node.name for node in catalog.nodes.values()}), "node"), changed + _unread(result, "commands"),
    )  # fmt: skip
    absent = [f"{node.name}: {why}" for node, why in catalog.absent.values()]
    yield Check(
        "Is each store the one that its node was made with?", ("S3",), plural(len(catalog.nodes), "store"), absent
    )
    base = judgement.base
    old = [] if base is None else [f"{sum(base.older.values()):,} events are older than the evidence that is kept"]
    left = old + _unread(result, "outcomes") + _unread(result, "realm")
    yield Check("Is the evidence whole?", ("Q1",), f"{plural(len(judgement.runs), 'run')} of gateways", left)


def _of_ledgers(result: Result) -> Iterator[Check]:
    compared, left, lines = result.compared, ["no ledgers were given (--ledgers)"], "-"
    if compared is not None:
        left = [*compared.reasons]
        left += [f"{plural(compared.unreadable, 'line')} could not be read"] if compared.unreadable else []
        lines = f"{plural(sum(compared.steps.values()), 'line')} of {plural(compared.clients, 'client')}"
    yield Check("Do the clients' own ledgers agree?", ("C1", "C2", "C3", "C4", "C5"), lines, left)


def _unread(result: Result, kind: str) -> list[str]:
    gap = result.landed.extent.unread_of(f"{result.realm.prefix}.{kind}")
    return [] if gap is None else [gap.words]
