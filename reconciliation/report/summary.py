"""The result in plain words, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciliation.history.cause import Cause
from reconciliation.jobs.reconcile import Judgement
from reconciliation.ledgers.compared import Compared
from reconciliation.model.classes import CLASSES, SEVERITY_WORDS, is_anomaly
from reconciliation.model.settings import Realm
from reconciliation.model.window import BEGINNING, END, Window, readable
from reconciliation.read.landing import Landed
from reconciliation.report import acknowledged, since
from reconciliation.report.balance import Balance, DurableBalance, NodeBalance
from reconciliation.report.findings import ClassReport, Findings
from reconciliation.report.result import Result

_SHOWN = 3


def write(result: Result) -> str:
    landed, judgement = result.landed, result.judgement
    lines = [
        f"Verdict: {result.verdict.words}",
        "",
        f"Realm: {place(result.realm)}. Window: {window_words(result.window)}. {evidence_words(judgement)}",
        made_words(result),
        *([base_words(judgement, landed)] if judgement.base is not None else []),
        *([landed.said] if landed.said else []),
        *([compared_words(result.compared)] if result.compared is not None else []),
        "",
        *_balance(result.sheet),
        "",
        *_classes(result.findings),
        "",
        *acknowledged.write(result.known, result.acknowledged_in),
        *since.write(result.since, result.damaged, _SHOWN).splitlines(),
    ]
    return "\n".join(lines).rstrip() + "\n"


def since_last(result: Result) -> str:
    """The verdict, and only what the reconciliation before did not have."""
    verdict, known = result.verdict, "\n".join(acknowledged.write(result.known, result.acknowledged_in))
    return f"Verdict: {verdict.words}\n\n{news(result)}{known}\n{since.exit_words(result.since, verdict.title)}\n"


def news(result: Result) -> str:
    """Only what the reconciliation before did not have."""
    return since.write(result.since, result.damaged)


def made_words(result: Result) -> str:
    """When it was made, and how old the evidence was then."""
    record = result.record
    last = record.sources["last_us"]
    age = "no gateway has told anything" if last is None else f"the last outcome is {age_words(record.at_us - last)}"
    return f"Made: {readable(record.at_us)}, in {record.took_s:.0f} s; {age}."


def age_words(age_us: int) -> str:
    """How long ago. A clock that runs ahead makes it no time."""
    seconds = max(0, age_us) // 1_000_000
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}s old"
    return f"{seconds} second{'s' if seconds != 1 else ''} old"


def place(realm: Realm) -> str:
    return f"embedded in {realm.path}" if realm.path else f"Kafka at {realm.bootstrap}, prefix {realm.prefix}"


def window_words(window: Window) -> str:
    if window == Window():
        return "everything that is kept"
    since = readable(window.since) if window.since != BEGINNING else "the beginning"
    return f"{since} to {readable(window.until) if window.until != END else 'now'}"


def evidence_words(judgement: Judgement) -> str:
    judged = sum(tally.count for tally in judgement.tallies)
    states = [run.state for run in judgement.runs]
    runs = ", ".join(f"{states.count(state)} {state}" for state in ("closed", "killed", "live") if state in states)
    stored = sum(count.get("events", 0) for (_, durable), count in judgement.counts.items() if durable is None)
    of_runs = f"{judged:,} outcomes of {len(states)} gateway runs ({runs or 'none'})"
    return f"Evidence: {of_runs}, {stored:,} events in the stores."


def compared_words(compared: Compared) -> str:
    """What clients noted, and what of it could not be compared."""
    steps = ", ".join(f"{compared.steps.get(what, 0):,} {what}" for what in ("sent", "told", "received", "settled"))
    text = f"Client ledgers: {compared.clients:,} client{'s' if compared.clients != 1 else ''}; {steps}."
    return f"{text} Not compared: {'; '.join(compared.reasons)}." if compared.reasons else text


def base_words(judgement: Judgement, landed: Landed) -> str:
    """From where on is judged, when old evidence was trimmed."""
    assert judgement.base is not None
    older, since = sum(judgement.base.older.values()), readable(judgement.base.since)
    cut = sum(run.base > 1 for run in judgement.runs)
    return (
        f"Base: outcome records are kept from {since} on (offset {judgement.catalog.outcomes_first:,}), the journal "
        f"from offset {judgement.catalog.journal_first:,}; what is older was trimmed and is not judged: {older:,} "
        f"events in the stores, and the beginning of {cut:,} run{'s' if cut != 1 else ''}."
    )


def _balance(sheet: Balance) -> Iterator[str]:
    yield "Balance by node (told = stored)"
    yield from _table(node_row(node) for node in sheet.nodes) if sheet.nodes else ["  (no nodes)"]
    if sheet.durables:
        yield ""
        yield "Balance by queue and durable (entitled = what became of it)"
        yield from _table(durable_row(durable) for durable in sheet.durables)
    yield from (f"  {words}" for words in gone_words(sheet))
    yield ""
    yield f"Difference: {sheet.difference:,} - {difference_words(sheet)}."


def gone_words(sheet: Balance) -> Iterator[str]:
    """What was accepted in nodes that are meant to be no more."""
    if sheet.deleted:
        yield f"{sheet.deleted:,} more publishes were accepted in nodes that the journal says were deleted since."
    if sheet.temporary:
        yield f"{sheet.temporary:,} more publishes were accepted in temporary nodes that have ended."


def difference_words(sheet: Balance) -> str:
    if sheet.difference:
        return "events are unaccounted for"
    if sheet.unseen:
        return f"every event is accounted for, but {sheet.unseen:,} could not be compared with anything"
    return "every event is accounted for"


def node_row(balance: NodeBalance) -> dict[str, str | int]:
    return {
        "node": balance.node,
        "kind": balance.kind,
        "accepted": balance.accepted,
        "+indeterminate": balance.indeterminate,
        "+in flight": balance.in_flight,
        "+copied": balance.copied,
        "+anomalies": balance.anomalies,
        "+older": balance.older,
        "+native": balance.native,
        "+unproven": balance.unproven,
        "=stored": balance.stored,
        "+retained out": balance.retained_out,
        "+unread": balance.unread,
        "difference": balance.difference,
    }


def durable_row(balance: DurableBalance) -> dict[str, str | int]:
    return {
        "node": balance.node,
        "durable": balance.durable,
        "entitled": balance.entitled,
        "=acknowledged": balance.acknowledged,
        "+discarded": balance.discarded,
        "+dead letters": balance.dead_lettered,
        "+expired": balance.expired,
        "+filtered": balance.filtered,
        "+evicted": balance.evicted,
        "+moved": balance.moved,
        "+purged": balance.purged,
        "+available": balance.available,
        "+skipped": balance.skipped,
        "+ended before stored": balance.early,
        "+lost by retention": balance.retained_out,
        "difference": balance.difference,
    }


def _table(rows: Iterator[dict[str, str | int]]) -> Iterator[str]:
    table = list(rows)
    cells = [[f"{value:,}" if isinstance(value, int) else _short(value) for value in row.values()] for row in table]
    header = list(table[0])
    widths = [max(len(header[i]), *(len(row[i]) for row in cells)) for i in range(len(header))]
    for row, first in ((header, header), *((row, table[0].values()) for row in cells)):
        aligned = (
            text.ljust(width) if isinstance(kind, str) and index < 2 else text.rjust(width)
            for index, (text, width, kind) in enumerate(zip(row, widths, first, strict=True))
        )
        yield ("  " + "  ".join(aligned)).rstrip()


def _short(text: str) -> str:
    return text if len(text) <= 32 else text[:29] + "..."


def _classes(findings: Findings) -> Iterator[str]:
    if not findings.classes:
        return
    yield "Findings"
    for report in findings.classes:
        yield from _class(report, [cause for cause in findings.causes if cause.code == report.code])


def _class(report: ClassReport, causes: list[Cause]) -> Iterator[str]:
    kind = CLASSES[report.code]
    nodes = ", ".join(_short(name) for name in sorted(report.nodes)[:_SHOWN])
    where = f" on {nodes}" if nodes else ""
    count = f"{report.count:,}{of_messages(report, causes)}"
    yield f"  {report.code} {kind.name}: {count} ({SEVERITY_WORDS[kind.severity]}){where}"
    for row in report.examples[:_SHOWN]:
        yield f"      {example_words(row)}"
    if is_anomaly(report.code):
        names = [f"{cause.id} ({cause.count:,}{_known(cause)})" for cause in causes]
        more = f", and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
        yield f"      Findings, and their messages: {', '.join(names[:_SHOWN])}{more}"
    if is_anomaly(report.code):
        yield f"      What to do: {kind.action}"


def of_messages(report: ClassReport, causes: Sequence[Cause]) -> str:
    """Of how many messages its rows are, where several rows name one; the verdict counts messages."""
    count = sum(cause.count for cause in causes)
    return "" if count == report.count else f" rows of {since.messages(count)}"


def _known(cause: Cause) -> str:
    return f", {cause.count - cause.open:,} acknowledged" if cause.open < cause.count else ""


def example_words(row: dict[str, object]) -> str:
    """One finding on one line: where it is, and what is wrong."""
    parts = [f"tag {row['tag']}" if row["tag"] else "", f"run {row['run']} seq {row['seq']}" if row["seq"] else ""]
    parts += [f"link {row['link']} of {row['container']}" if row["link"] else ""]
    where = ", ".join(part for part in parts if part) or (f"run {row['run']}" if row["run"] else "the realm")
    return f"{where}: {row['detail']}"
