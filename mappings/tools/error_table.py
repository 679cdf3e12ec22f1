"""The error table: what a peer gets for each code of each log, at each moment at which the code can concern a peer.

`expanded/PROFILE.error.tsv`, tab-separated: code, realm (its log), moment, stage (`unsent`, `sent`, or `any` where both
are alike; `mappings.language.causes`), when (the facts that matter, where some do), cause, answer, condition, class,
scope, retry, retry_after_ms, rule. Where no peer is answered, the answer is what the realm does instead and there is no
rule.

Nothing is decided here: the codes are `errors.yaml`'s, the answers those of `mappings.language.causes`, by which the
realm answers, the rest the compiled tables' by which the gateway decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mappings.compiler.compile import Decision, Slice
from mappings.compiler.errors import LOGS, Errors, NativeError
from mappings.compiler.table_set import TableSet
from mappings.language.causes import ANSWERS, MOMENTS, STAGES, TABLES_OF, UNANSWERED, cause_at
from mappings.language.words import LISTED, UNLISTABLE
from mappings.tools.difference import ERRORS, Expanded, Facts

TABLE = ERRORS
ANY = "any"
_FACTS = ("code", "realm", "moment", "stage", "when")
_SAID = ("cause", "answer", "condition", "class", "scope", "retry", "retry_after_ms")
COLUMNS = (*_FACTS, *_SAID, "rule")
_Answer = tuple[str, str, str, str]  # when, condition, class, rules


@dataclass(frozen=True, slots=True)
class ErrorLine:
    """One line; an empty text is nothing."""

    code: str
    realm: str
    moment: str
    stage: str
    when: str
    cause: str
    answer: str
    condition: str
    error_class: str
    error: NativeError
    rule: str

    def columns(self) -> tuple[str, ...]:
        after = "" if self.error.retry_after_ms is None else str(self.error.retry_after_ms)
        facts = (self.code, self.realm, self.moment, self.stage, self.when)
        decided = (self.cause, self.answer, self.condition, self.error_class)
        return (*facts, *decided, self.error.scope, self.error.retry, after, self.rule)


def error_lines(errors: Errors, tables: TableSet, code: str | None = None) -> Iterator[ErrorLine]:
    """Every line of one profile, or those of one code."""
    answered = {
        (moment, answer): [*_answers(tables, moment, answer)]
        for moment, answers in ANSWERS.items()
        for answer in answers.values()
    }
    for log in LOGS:
        for name, error in sorted(errors.codes[log].items()):
            if code is not None and name != code:
                continue
            for moment in MOMENTS:
                for stage, cause in _stages(log, error.cause, moment):
                    instead = UNANSWERED[moment].get(cause)
                    answer = instead or ANSWERS[moment][cause]
                    for when, condition, word, rule in [("", "", "", "")] if instead else answered[moment, answer]:
                        yield ErrorLine(name, log, moment, stage, when, cause, answer, condition, word, error, rule)


def error_text(errors: Errors, tables: TableSet) -> str:
    """The file of one profile; none where a table that it needs has problems."""
    lines = ["\t".join(COLUMNS), *("\t".join(line.columns()) for line in error_lines(errors, tables))]
    return "\n".join(lines) + "\n"


def read_errors(text: str) -> Expanded:
    """The file, to be compared with another one. Which rule it was is compared where the rule stands."""
    header, *lines = text.rstrip("\n").split("\n")
    names = header.split("\t")
    cells: dict[Facts, tuple[str, str]] = {}
    for line in lines:
        row = dict(zip(names, line.split("\t"), strict=True))
        cells_text = " ".join(f"{name}={row[name]}" for name in names if name not in (*_FACTS, "rule") and row[name])
        cells[tuple((name, row[name]) for name in _FACTS)] = ("", cells_text)
    return Expanded(_FACTS, cells)


def _stages(log: str, cause: str, moment: str) -> Iterable[tuple[str, str]]:
    causes = {stage: cause_at(log, cause, moment, stage) for stage in STAGES}
    return [(ANY, cause_at(log, cause, moment, "sent"))] if len({*causes.values()}) == 1 else causes.items()


def _answers(tables: TableSet, moment: str, answer: str) -> Iterator[_Answer]:
    """What the table says to an answer: one line where condition and class are the same whatever else is so; then those
    of peers whose source does not list an outcome, where their answer differs."""
    table = tables[TABLES_OF[moment]]
    constants = {"moment": moment} if "moment" in table.axes else {}
    part = table.slice(answer=answer, **constants)
    listed = {axis: LISTED[0] for axis in UNLISTABLE if axis in part.axes}
    usual: list[Decision] = []
    unlisted: list[Decision] = []
    for decision in part.cells:
        if decision is None:
            continue
        facts = table.facts(decision.cell)
        if facts == {**facts, **listed}:
            usual.append(decision)
        elif _heard(table.decide(**{**facts, **listed})) != _heard(decision):
            unlisted.append(decision)
    yield from _grouped(part, tables, usual, usual)
    yield from _grouped(part, tables, unlisted, [*usual, *unlisted])


def _heard(decision: Decision) -> tuple[str, str]:
    return decision.then["condition"] or "", decision.then["class"] or ""


def _grouped(part: Slice, tables: TableSet, decisions: list[Decision], everything: list[Decision]) -> Iterator[_Answer]:
    groups: dict[tuple[str, str], list[Decision]] = {}
    for decision in decisions:
        groups.setdefault(_heard(decision), []).append(decision)
    for (condition, word), alike in groups.items():
        when = _when(part, tables, alike, everything) if len(alike) < len(everything) else ""
        rules = dict.fromkeys(f"{part.name}.{decision.rule}" for decision in alike)
        yield when, condition, word, ",".join(rules)


def _when(part: Slice, tables: TableSet, decisions: list[Decision], everything: list[Decision]) -> str:
    """The facts that some of the decisions about an answer have in common, and not all."""
    table = tables[part.name]
    parts = []
    for axis in part.axes:
        mine, possible = (
            dict.fromkeys(table.facts(decision.cell)[axis] for decision in some) for some in (decisions, everything)
        )
        if mine.keys() != possible.keys():
            parts.append(f"{axis}={'|'.join(mine)}")
    return " ".join(parts)
