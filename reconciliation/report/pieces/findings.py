"""What is wrong: by class, and within a class each cause once, with all places where it is found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from reconciliation.history.cause import Cause
from reconciliation.history.compared import Comparison
from reconciliation.model.classes import CLASSES, INCOMPLETE, SEVERITY_WORDS, is_anomaly
from reconciliation.report.findings import ClassReport, tag
from reconciliation.report.pieces.html import command, folded, number, plural, some, span_of, table
from reconciliation.report.result import Result
from reconciliation.report.summary import of_messages

CAUSES_MAX = 20
"""So many causes of a class are shown, those that are new first, then the largest."""
PLACES_MAX = 50
"""So many places of a cause."""
State = Mapping[str, str]
"""By finding: what it is since the reconciliation before, as HTML."""


def findings(result: Result) -> Iterator[str]:
    """Anomalies."""
    yield '<h2 id="findings">What is wrong</h2>'
    classes = [report for report in result.findings.classes if is_anomaly(report.code)]
    if not classes:
        yield '<p class="soft">Nothing that was looked at. What was, and what was not, stands below.</p>'
        return
    states = _states(result.since)
    for report in classes:
        yield from _class(report, _of(result, report.code), states, result.window.name)


def informational(result: Result) -> Iterator[str]:
    """What is no anomaly, and still worth a word."""
    classes = [report for report in result.findings.classes if not is_anomaly(report.code)]
    if classes:
        yield "<h2>No anomalies</h2><p>They do not change the verdict.</p>"
        for report in classes:
            yield from _class(report, _of(result, report.code), {}, result.window.name)


def _of(result: Result, code: str) -> list[Cause]:
    return [cause for cause in result.findings.causes if cause.code == code]


def _class(report: ClassReport, causes: Sequence[Cause], states: State, window: str) -> Iterator[str]:
    kind = CLASSES[report.code]
    known = sum(cause.count - cause.open for cause in causes)
    notes = [f"{known:,} acknowledged"] if known else []
    notes = [*filter(None, [of_messages(report, causes).strip()]), *notes]
    yield f'<article id="{report.code}"><h3>{report.code} {escape(kind.name)} '
    yield f'<span class="badge {kind.severity}">{SEVERITY_WORDS[kind.severity]}</span>'
    note = f"<small>{', '.join(notes)}</small>" if notes else ""
    yield f'<span class="count">{report.count:,}{note}</span></h3>'
    subject = "Something" if report.code == INCOMPLETE else "This delivery"
    yield f'<p>{escape(f"{subject} {kind.meaning}.")}</p><p class="do">{escape(kind.action)}</p>'
    path = f"report/window={window}/class={report.code}/"
    yield f'<p class="soft">Every message of it: <code>{escape(path)}</code>, as Parquet.</p>'
    groups = _grouped(causes, states)
    for words, group in groups[:CAUSES_MAX]:
        yield from _cause(words, group, states)
    if len(groups) > CAUSES_MAX:
        left = [cause for _, group in groups[CAUSES_MAX:] for cause in group]
        messages = plural(sum(cause.count for cause in left), "message")
        yield f'<p class="soft">And {plural(len(left), "finding")} more, of {messages}.</p>'
    yield "</article>"


def _grouped(causes: Sequence[Cause], states: State) -> list[tuple[str, list[Cause]]]:
    """By what is said. What is new comes first, then what is of most messages that are not acknowledged."""
    groups: dict[str, list[Cause]] = {}
    for cause in causes:
        groups.setdefault(cause.words, []).append(cause)

    def weight(cause: Cause) -> tuple[bool, int, int]:
        return cause.id not in states, -cause.open, -cause.count

    for group in groups.values():
        group.sort(key=lambda cause: (weight(cause), cause.place))
    return sorted(groups.items(), key=lambda item: (weight(item[1][0]), item[0]))


def _cause(words: str, group: Sequence[Cause], states: State) -> Iterator[str]:
    first = group[0]
    text = first.examples[0]["detail"] if first.examples else words
    times = [at for cause in group for at in (cause.at_first, cause.at_last) if at is not None]
    yield f'<section class="cause"><p class="said"><span class="count">{plural(sum(c.count for c in group), "message")}'
    yield f"</span>{escape(text)}</p>"
    places = list(dict.fromkeys(cause.place for cause in group if cause.place))
    where = f"in {some(places)}" if places else "in the realm"
    state = states.get(first.id, "") if len(group) == 1 else _state_of_all(group, states)
    yield f"<p>{where}, {span_of(min(times, default=None), max(times, default=None))} {state}</p>"
    if first.examples:
        yield from _example(first)
    yield from folded(_summary(group), _places(group, states))
    yield "</section>"


def _example(cause: Cause) -> Iterator[str]:
    """The first message, and what to ask of it."""
    row = cause.examples[0]
    facts = [(name, value) for name, value in _facts(row) if value]
    if facts:
        yield '<dl class="facts">'
        yield "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
        yield "</dl>"
    yield "".join(f"<p>{command(words)}</p>" for words in _commands(row, cause))


def _facts(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "for example", _example_name(row)
    yield "link", row["link"] or ""
    yield "container", row["container"] or ""
    yield "rule", row["rule"] or ""
    yield "run and seq", f"{row['run']}:{row['seq']}" if row["seq"] is not None else row["run"] or ""


def _example_name(row: Mapping[str, Any]) -> str:
    named = tag(dict(row))
    return f"tag {named}" if named else ""


def _commands(row: Mapping[str, Any], cause: Cause) -> Iterator[str]:
    """They are for the first message; a finding is acknowledged as a whole."""
    delivery = f"{row['run']}:{row['seq']}" if row["run"] and row["seq"] is not None else ""
    named = tag(dict(row)) or delivery
    if named:
        yield f"realmgate trace {named}"
    if delivery:
        yield f"realmgate mappings explain --record {delivery}"
    if is_anomaly(cause.code):
        yield f"realmgate reconcile --acknowledge {cause.id} --until DAY --by NAME --reason TEXT --out DIR"


def _summary(group: Sequence[Cause]) -> str:
    return group[0].id if len(group) == 1 else f"{len(group):,} findings with this cause"


def _places(group: Sequence[Cause], states: State) -> Iterator[str]:
    def row(cause: Cause) -> list[str]:
        known = f"<small>{cause.count - cause.open:,} acknowledged</small>" if cause.open < cause.count else ""
        members = ", ".join(cause.members.parts()[:10])
        return [
            f'<code class="id">{cause.id}</code>',
            f"{escape(cause.node) or '-'}",
            " ".join(filter(None, (escape(cause.part), escape(cause.durable)))) or "-",
            f"{number(cause.count)}{known}",
            f"{escape(members)} {states.get(cause.id, '')}",
        ]

    columns = ("finding", "node", "partition or level, durable", "#messages", "EIDs, or deliveries")
    yield from table("places of this cause", columns, map(row, group[:PLACES_MAX]))
    if len(group) > PLACES_MAX:
        left = group[PLACES_MAX:]
        yield f'<p class="soft">And {plural(len(left), "finding")} more, of '
        yield f"{plural(sum(cause.count for cause in left), 'message')}.</p>"


def _states(since: Comparison) -> State:
    if since.before is None:
        return {}
    new = {diff.cause.id: '<span class="badge new">new</span>' for diff in since.new}
    grown = {diff.cause.id: f'<span class="badge new">{diff.more:,} more than before</span>' for diff in since.grown}
    again = {diff.cause.id: '<span class="badge new">not acknowledged any more</span>' for diff in since.reopened}
    return new | grown | again


def _state_of_all(group: Sequence[Cause], states: State) -> str:
    news = sum(cause.id in states for cause in group)
    return f'<span class="badge new">{news:,} of {plural(len(group), "finding")} new or grown</span>' if news else ""
