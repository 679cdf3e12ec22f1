"""The verdict, what has changed, and how old all this is."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from reconciliation.model.classes import is_anomaly
from reconciliation.model.window import readable
from reconciliation.report import since, summary
from reconciliation.report.pieces.html import plural
from reconciliation.report.result import Result


def head(result: Result) -> Iterator[str]:
    verdict, landed, judgement = result.verdict, result.landed, result.judgement
    state = "good" if verdict.clean else "warn" if verdict.passes else "bad"
    words = escape(verdict.sentence)
    for report in result.findings.classes:
        words = words.replace(f"({report.code})", f'(<a href="#{report.code}">{report.code}</a>)')
    yield "<header>\n<h1>realmgate reconciliation</h1>"
    yield f'<div class="strip {state}" role="status"><strong>{escape(verdict.title.capitalize())}</strong>{words}</div>'
    yield f'<p class="since"><a href="#trend">{escape(since.heading(result.since))}</a></p>'
    yield f"<p>Realm: {escape(summary.place(result.realm))}. Window: {escape(summary.window_words(result.window))}.</p>"
    yield f"<p>{escape(summary.made_words(result))}</p>"
    if judgement.base is not None:
        yield f"<p>{escape(summary.base_words(judgement, landed))}</p>"
    if landed.said:
        yield f"<p>{escape(landed.said)}</p>"
    yield '<dl class="tiles">'
    for term, figure, note in _tiles(result):
        yield f"<div><dt>{term}</dt><dd>{figure}<small>{note}</small></dd></div>"
    yield "</dl>\n</header>"


def _tiles(result: Result) -> Iterator[tuple[str, str, str]]:
    judgement, findings, sheet = result.judgement, result.findings, result.sheet
    judged = sum(tally.count for tally in judgement.tallies)
    stored = sum(counts.get("events", 0) for (_, durable), counts in judgement.counts.items() if durable is None)
    states = [run.state for run in judgement.runs]
    words = ", ".join(f"{states.count(state)} {state}" for state in ("closed", "killed", "live") if state in states)
    last = max((run.at_last for run in judgement.runs), default=0)
    informational = sum(report.count for report in findings.classes if not is_anomaly(report.code))
    notes = [f"{result.verdict.acknowledged:,} acknowledged"] if result.verdict.acknowledged else []
    yield "Anomalies", f"{findings.open:,}", ", ".join([*notes, f"{informational:,} informational"])
    yield "Difference in the books", f"{sheet.difference:,}", "closes" if not sheet.difference else "does not close"
    yield "Outcomes judged", f"{judged:,}", f"until {readable(last)}" if last else "none yet"
    yield "Events in the stores", f"{stored:,}", plural(len({node.node for node in sheet.nodes}), "node")
    yield "Gateway runs", f"{len(states):,}", words or "none"
