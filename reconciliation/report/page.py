"""The result as one HTML page: no script, no outside resource; light and dark, wide and narrow.

All text from the realm is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import Any

from reconciliation.jobs.reconcile import Judgement
from reconciliation.model.classes import CLASSES, SEVERITY_WORDS, is_anomaly
from reconciliation.model.window import readable
from reconciliation.read.landing import Landed
from reconciliation.report import acknowledged, summary
from reconciliation.report.balance import Balance
from reconciliation.report.error_matrix import Cell, error_cells
from reconciliation.report.findings import ClassReport, Findings
from reconciliation.report.result import Result

_STYLE = files("reconciliation.report") / "page.css"
_TEXT_COLUMNS = ("node", "kind", "durable")
_BAD_COLUMNS = ("+skipped", "+ended before stored", "+lost by retention", "+anomalies", "+unproven", "+unread")
_SUM_COLUMNS = ("accepted", "entitled", "=stored")
_BALANCE_WORDS = {
    "=stored": "= in store",
    "+retained out": "+ no longer kept",
    "+older": "+ older than the evidence",
    "+native": "+ of plain producers",
    "+unproven": "+ without evidence",
    "+unread": "+ not readable",
    "+lost by retention": "+ lost by retention",
}


def render(result: Result) -> str:
    landed, judgement, findings, sheet, verdict = (
        result.landed, result.judgement, result.findings, result.sheet, result.verdict
    )  # fmt: skip
    clean = verdict.clean
    body = [
        *_header(result),
        *(() if clean else _classes(findings)),  # what is wrong comes first
        *_acknowledged(result),
        *_sheet(sheet),
        *_matrix(error_cells(judgement.tallies)),
        *(_classes(findings) if clean else ()),
        *_inputs(judgement, landed),
    ]
    title = f"{verdict.word.capitalize()} - realmgate reconciliation"
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>\n{_STYLE.read_text()}</style>\n</head>\n<body>\n<main>",
            *body,
            "</main>\n</body>\n</html>\n",
        ]
    )


def _header(result: Result) -> Iterator[str]:
    verdict, landed, judgement, findings = result.verdict, result.landed, result.judgement, result.findings
    state = "good" if verdict.clean else "warn" if verdict.passes else "bad"
    yield "<header>\n<h1>realmgate reconciliation</h1>"
    words = escape(verdict.sentence)
    for one in findings.classes:
        words = words.replace(f"({one.code})", f'(<a href="#{one.code}">{one.code}</a>)')
    yield f'<div class="strip {state}" role="status"><strong>{verdict.title.capitalize()}</strong>{words}</div>'
    yield f"<p>Realm: {escape(summary.place(result.realm))}. Window: {escape(summary.window_words(result.window))}.</p>"
    if judgement.base is not None:
        yield f"<p>{escape(summary.base_words(judgement, landed))}</p>"
    yield f"<p>{escape(summary.made_words(result))}</p>"
    if landed.said:
        yield f"<p>{escape(landed.said)}</p>"
    yield '<dl class="tiles">'
    for term, figure, note in _tiles(judgement, findings, result.sheet):
        yield f"<div><dt>{term}</dt><dd>{figure}<small>{note}</small></dd></div>"
    yield "</dl>\n</header>"


def _acknowledged(result: Result) -> Iterator[str]:
    if result.known:
        yield f"<h2>Acknowledged</h2><p>In {escape(result.acknowledged_in)}.</p><ul>"
        yield from (f"<li>{escape(acknowledged.named(one))}</li>" for one in result.known)
        yield "</ul>"


def _tiles(judgement: Judgement, findings: Findings, sheet: Balance) -> Iterator[tuple[str, str, str]]:
    judged = sum(one.count for one in judgement.tallies)
    stored = sum(counts.get("events", 0) for (_, durable), counts in judgement.counts.items() if durable is None)
    states = [run.state for run in judgement.runs]
    words = ", ".join(f"{states.count(state)} {state}" for state in ("closed", "killed", "live") if state in states)
    last = max((run.at_last for run in judgement.runs), default=0)
    informational = sum(one.count for one in findings.classes if not is_anomaly(one.code))
    yield "Anomalies", f"{findings.anomalies:,}", f"{informational:,} informational"
    yield "Difference in the books", f"{sheet.difference:,}", "closes" if not sheet.difference else "does not close"
    yield "Outcomes judged", f"{judged:,}", f"until {readable(last)}" if last else "none yet"
    yield "Events in the stores", f"{stored:,}", f"{len(sheet.nodes):,} nodes"
    yield "Gateway runs", f"{len(states):,}", words or "none"


def _sheet(sheet: Balance) -> Iterator[str]:
    yield "<h2>Balance sheet</h2>"
    yield "<p>What publishers were told, against what the stores hold. Both sides come from different topics.</p>"
    yield from _table([summary.node_row(one) for one in sheet.nodes], "No nodes.")
    yield from (f"<p>{words}</p>" for words in summary.gone_words(sheet))
    yield "<h2>Queues and durable subscriptions</h2>"
    yield "<p>Every event each of them is entitled to, and what became of it.</p>"
    yield from _table([summary.durable_row(one) for one in sheet.durables], "None.")
    words = summary.difference_words(sheet)
    yield f"<p>Difference in all: <strong>{sheet.difference:,}</strong> - {words}.</p>"


def _table(rows: list[dict[str, str | int]], empty: str) -> Iterator[str]:
    if not rows:
        yield f'<p class="soft">{empty}</p>'
        return
    yield '<div class="scroll"><table><thead><tr>'
    for name in rows[0]:
        kind = ' class="text"' if name in _TEXT_COLUMNS else ""
        shown = _BALANCE_WORDS.get(name) or (f"{name[0]} {name[1:]}" if name[0] in "+=" else name)
        yield f'<th scope="col"{kind}>{escape(shown)}</th>'
    yield "</tr></thead><tbody>"
    for row in rows:
        yield f"<tr>{''.join(_balance_cell(name, value) for name, value in row.items())}</tr>"
    yield "</tbody></table></div>"


def _balance_cell(name: str, value: str | int) -> str:
    if isinstance(value, str):
        return f'<td class="text">{escape(value)}</td>'
    if name == "difference":
        return f'<td class="{"bad" if value else "good"}">{value:,}</td>'
    if value == 0:
        return '<td class="zero">0</td>'
    kind = "bad" if name in _BAD_COLUMNS else "sum" if name in _SUM_COLUMNS else ""
    return f'<td class="{kind}">{value:,}</td>'


def _matrix(cells: dict[tuple[str, str], Cell]) -> Iterator[str]:
    yield "<h2>Errors told to peers</h2>"
    yield "<p>AMQP condition by the realm's answer and native code; deliveries, and when they were last seen.</p>"
    if not cells:
        yield '<p class="soft">No delivery met an error.</p>'
        return
    conditions = sorted({condition for condition, _ in cells})
    natives = sorted({native for _, native in cells})
    yield '<div class="scroll"><table><thead><tr><th class="text" scope="col">condition</th>'
    yield "".join(f'<th scope="col"><code>{escape(native)}</code></th>' for native in natives) + "</tr></thead><tbody>"
    for condition in conditions:
        row = "".join(_matrix_cell(cells.get((condition, native))) for native in natives)
        yield f'<tr><th class="text" scope="row"><code>{escape(condition)}</code></th>{row}</tr>'
    yield "</tbody></table></div>"
    yield '<p class="soft">Colours: <span class="cell fatal">fatal</span> closes the link, '
    yield '<span class="cell transient">transient</span> does not, <span class="cell none">no class</span>.</p>'


def _matrix_cell(cell: Cell | None) -> str:
    if cell is None:
        return '<td class="zero">0</td>'
    nodes = escape(", ".join(sorted(cell.nodes)))
    small = f"<small>{escape(readable(cell.at_last))}</small>"
    return f'<td title="nodes: {nodes}"><span class="cell {escape(cell.severity)}">{cell.count:,}{small}</span></td>'


def _classes(findings: Findings) -> Iterator[str]:
    yield "<h2>Findings</h2>"
    if not findings.classes:
        yield "<p>None. Nothing was found that needs anybody's attention.</p>"
        return
    yield "<p>By class; each with its first examples. The full list is in the Parquet files beside this page.</p>"
    for one in findings.classes:
        yield from _class(one)


def _class(one: ClassReport) -> Iterator[str]:
    kind = CLASSES[one.code]
    yield f'<article id="{one.code}"><h3>{one.code} {escape(kind.name)} '
    yield f'<span class="badge {kind.severity}">{SEVERITY_WORDS[kind.severity]}</span>'
    yield f'<span class="count">{one.count:,}</span></h3>'
    yield f"<p>This delivery {escape(kind.meaning)}.</p>" if one.code != "Q1" else f"<p>{_sentence(kind.meaning)}</p>"
    yield f'<p class="do">{escape(kind.action)}</p>'
    yield f"<details{' open' if is_anomaly(one.code) else ''}><summary>{_examples_words(one)}</summary>"
    yield '<div class="scroll"><table><thead><tr>'
    rows = [_example(row) for row in one.examples]
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    yield "".join(f'<th scope="col">{name}</th>' for name in names) + "</tr></thead><tbody>"
    for row in rows:
        yield "<tr>" + "".join(_example_cell(name, row[name]) for name in names) + "</tr>"
    yield "</tbody></table></div></details></article>"


def _sentence(meaning: str) -> str:
    return escape(f"Something {meaning}.")


def _examples_words(one: ClassReport) -> str:
    shown = f"{len(one.examples)} example{'s' if len(one.examples) != 1 else ''}"
    if one.first_eid is None:
        return shown
    if one.first_eid == one.last_eid:
        return f"{shown}; EID {one.first_eid:,}"
    return f"{shown}; EIDs {one.first_eid:,} to {one.last_eid:,}"


def _example(row: dict[str, Any]) -> dict[str, str]:
    """The columns of an example, those that nothing fills are not shown."""
    return {
        "node": row["node"] or "",
        "tag": row["tag"] or "",
        "what is wrong": row["detail"],
        "link": f"{row['link']} of {row['container']}" if row["link"] else "",
        "durable": row["durable"] or "",
        "rule": row["rule"] or "",
        "run": f"{row['run']} seq {row['seq']}" if row["seq"] is not None else row["run"] or "",
        "deliveries": f"{row['count']:,}" if row["count"] > 1 else "",
    }


def _example_cell(name: str, text: str) -> str:
    if name == "tag":
        return f"<td><code>{escape(text)}</code></td>"
    return f'<td class="detail">{escape(text)}</td>' if name == "what is wrong" else f"<td>{escape(text)}</td>"


def _inputs(judgement: Judgement, landed: Landed) -> Iterator[str]:
    yield "<h2>What was read</h2>\n<details><summary>Gateway runs and offset ranges</summary>"
    yield _plain_head("run", "state", "judged below seq", "from", "to")
    for run in judgement.runs:
        times = f"<td>{readable(run.at_first)}</td><td>{readable(run.at_last)}</td>"
        yield f"<tr><td><code>{escape(run.name)}</code></td><td>{run.state}</td><td>{run.low:,}</td>{times}</tr>"
    yield "</tbody></table></div>" + _plain_head("topic", "partition", "from", "to")
    for one in landed.extent.ranges:
        offsets = f"<td>{one.first:,}</td><td>{one.end:,}</td>"
        yield f"<tr><td><code>{escape(one.topic)}</code></td><td>{one.partition}</td>{offsets}</tr>"
    yield "</tbody></table></div></details>"


def _plain_head(*names: str) -> str:
    cells = "".join(f'<th scope="col">{name}</th>' for name in names)
    return f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>'
