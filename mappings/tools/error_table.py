"""The error table: what a peer is told for each code of each log, at each moment at which it can meet somebody.

`expanded/PROFILE.error.tsv`, tab-separated: code, realm (its log), moment, stage (`unsent`, `sent`, or `any` where both
are alike; `mappings.causes`), when (the facts that matter, where some do), cause, answer, condition, class, scope,
retry, retry_after_ms, rule. Where nobody is told, the answer is what the realm does instead and there is no rule.

Nothing is decided here: the codes are `errors.yaml`'s, the answers those of `mappings.causes`, by which the realm
answers, the rest the compiled tables' by which the gateway decides. May import: the standard library, `mappings`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mappings.causes import ANSWERS, MOMENTS, STAGES, TABLES_OF, UNTOLD, cause_at
from mappings.compile import Decision, Slice
from mappings.difference import ERRORS, Expanded, Facts
from mappings.errors import LOGS, Errors, NativeError
from mappings.table_set import TableSet

TABLE = ERRORS
ANY = "any"
_FACTS = ("code", "realm", "moment", "stage", "when")
_SAID = ("cause", "answer", "condition", "class", "scope", "retry", "retry_after_ms")
COLUMNS = (*_FACTS, *_SAID, "rule")
_Told = tuple[str, str, str, str]  # when, condition, class, rules


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
        said = (self.cause, self.answer, self.condition, self.error_class)
        return (*facts, *said, self.error.scope, self.error.retry, after, self.rule)


def error_lines(errors: Errors, tables: TableSet, code: str | None = None) -> Iterator[ErrorLine]:
    """Every line of one profile, or those of one code."""
    told = {
        (moment, answer): [*_told(tables, moment, answer)]
        for moment, answers in ANSWERS.items()
        for answer in answers.values()
    }
    for log in LOGS:
        for name, error in sorted(errors.codes[log].items()):
            if code is not None and name != code:
                continue
            for moment in MOMENTS:
                for stage, cause in _stages(log, error.cause, moment):
                    instead = UNTOLD[moment].get(cause)
                    answer = instead or ANSWERS[moment][cause]
                    for when, condition, word, rule in [("", "", "", "")] if instead else told[moment, answer]:
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
        said = " ".join(f"{name}={row[name]}" for name in names if name not in (*_FACTS, "rule") and row[name])
        cells[tuple((name, row[name]) for name in _FACTS)] = ("", said)
    return Expanded(_FACTS, cells)


def _stages(log: str, cause: str, moment: str) -> Iterable[tuple[str, str]]:
    found = {stage: cause_at(log, cause, moment, stage) for stage in STAGES}
    return [(ANY, cause_at(log, cause, moment, "sent"))] if len({*found.values()}) == 1 else found.items()


def _told(tables: TableSet, moment: str, answer: str) -> Iterator[_Told]:
    """What the table says to an answer: one line where condition and class are the same whatever else is so."""
    table = tables[TABLES_OF[moment]]
    constants = {"moment": moment} if "moment" in table.axes else {}
    part = table.slice(answer=answer, **constants)
    groups: dict[tuple[str, str], list[Decision]] = {}
    for decision in part.cells:
        if decision is not None:
            key = decision.then["condition"] or "", decision.then["class"] or ""
            groups.setdefault(key, []).append(decision)
    everything = [decision for decisions in groups.values() for decision in decisions]
    for (condition, word), decisions in groups.items():
        when = _when(part, tables, decisions, everything) if len(groups) > 1 else ""
        rules = dict.fromkeys(f"{table.name}.{decision.rule}" for decision in decisions)
        yield when, condition, word, ",".join(rules)


def _when(part: Slice, tables: TableSet, decisions: list[Decision], everything: list[Decision]) -> str:
    """The facts that some of the decisions about an answer have in common, and not all."""
    table = tables[part.name]
    said = []
    for axis in part.axes:
        mine, possible = (
            dict.fromkeys(table.facts(decision.cell)[axis] for decision in some) for some in (decisions, everything)
        )
        if mine.keys() != possible.keys():
            said.append(f"{axis}={'|'.join(mine)}")
    return " ".join(said)
