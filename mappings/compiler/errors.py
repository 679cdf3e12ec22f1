"""Native errors as data: `errors.yaml`, read strictly. What a code of the log means to the realm, how far it reaches,
whether asking again helps, and what to say about it. Which condition a peer gets for it is decided by the tables.

    IN_FORCE.errors.of("kafka", "MSG_SIZE_TOO_LARGE").cause     # too-large
    IN_FORCE.errors.say("too-large", "MSG_SIZE_TOO_LARGE", "publish")      # what to do, for a description

Errors: `MappingProblems` with everything that is wrong with the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mappings.compiler.table_set import SHIPPED, MappingProblems
from mappings.language.causes import CAUSES
from mappings.language.vocabulary import CONDITIONS
from mappings.language.yaml_lines import Node, Problem, load_document, refuse_unknown_keys, suggest

FILE = "errors.yaml"
LOGS = ("kafka", "sqlite")
SCOPES = ("message", "link", "shard", "process")
RETRIES = ("never", "inside")
WAITED = ("attach", "publish", "settle", "commit")
"""Moments that a text may be written for; `later`, a subscription has the text of the attach."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,59}")
SAY_BYTES_MAX = 70  # what is left of a description is the node's name
_DOUBT = "indeterminate"
_KEYS = (*LOGS, "id", "cause", "scope", "retry", "retry_after_ms", "say", "because")
_OPTIONAL = ("refusals", "waits")
_WORDS = {"cause": CAUSES, "scope": SCOPES, "retry": RETRIES}


@dataclass(frozen=True, slots=True)
class Saying:
    """What to do about it, in few words: `usual`, or what there is at a moment (pairs of moment and words)."""

    usual: str
    at: tuple[tuple[str, str], ...] = ()

    def text(self, moment: str) -> str:
        return dict(self.at).get(moment, self.usual)

    def texts(self) -> set[str]:
        return {self.usual, *(text for _, text in self.at)}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Saying:
        return cls(document["usual"], tuple((moment, text) for moment, text in document["at"]))


@dataclass(frozen=True, slots=True)
class NativeError:
    """One kind of error, whatever its codes."""

    id: str
    cause: str
    scope: str
    retry: str
    retry_after_ms: int | None
    say: Saying
    because: str


class Errors:
    """Every code of every log, the realm's own answers, and what to do where the realm was not asked."""

    def __init__(
        self,
        codes: Mapping[str, Mapping[str, NativeError]],
        answers: Mapping[str, Saying],
        no_error: Mapping[str, Collection[str]] = MappingProxyType(dict.fromkeys(LOGS, ())),
        refusals: Mapping[str, str] = MappingProxyType({}),
        waits: Mapping[str, int] | None = None,
    ) -> None:
        self.codes = codes  # log -> name of the code -> what it is
        self.answers = answers
        self.refusals = refusals  # condition -> what to do
        self.waits = waits  # answer, or TABLE.RULE -> milliseconds; None: those that are shipped
        self.no_error = no_error  # log -> codes that say that all is well
        self._names = {name: error for of_log in codes.values() for name, error in of_log.items()}

    def of(self, log: str, name: str) -> NativeError | None:
        return self.codes[log].get(name)

    def named(self, native: str) -> NativeError | None:
        """By the code alone, as an answer carries it. SQLite's extended codes are those of their first two words."""
        error = self._names.get(native)
        return error or self._names.get("_".join(native.split("_")[:2]))

    def say(self, answer: str, native: str, moment: str = "") -> str:
        """What to do about it at that moment, in few words. A code's own words, unless they are of doubt and the answer
        is not, or the other way: what was certainly not sent is not in doubt, whatever the code says of others."""
        error = self.named(native)
        if error is not None and (error.cause == _DOUBT) == (answer == _DOUBT):
            return error.say.text(moment)
        saying = self.answers.get(answer)
        return saying.text(moment) if saying is not None else answer

    def advise(self, condition: str) -> str:
        """What to do where a table refuses by itself; empty where there is no advice."""
        return self.refusals.get(condition) or shipped_errors().refusals.get(condition, "")

    def wait_ms(self, rule: str, answer: str | None, native: str) -> int | None:
        """How long to wait before the same is tried again; None where waiting does not help. What is known of a code
        decides, else the answer, else, where the realm was not asked, the rule (TABLE.RULE)."""
        error = self.named(native)
        if error is not None:
            return error.retry_after_ms
        waits = shipped_errors().waits if self.waits is None else self.waits
        return (waits or {}).get(rule if answer is None else answer)

    def document(self) -> dict[str, Any]:
        """For another process: what `read` reads."""
        of_error: dict[NativeError, dict[str, list[str]]] = {}
        for log, codes in self.codes.items():
            for code, error in codes.items():
                of_error.setdefault(error, {name: [] for name in LOGS})[log].append(code)
        errors = [{**asdict(error), **of_error[error]} for error in of_error]
        answers = {name: asdict(saying) for name, saying in self.answers.items()}
        waits = None if self.waits is None else dict(self.waits)
        return {"errors": errors, "answers": answers, "refusals": dict(self.refusals), "waits": waits}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Errors:
        codes: dict[str, dict[str, NativeError]] = {log: {} for log in LOGS}
        for item in document["errors"]:
            words = {key: value for key, value in item.items() if key not in LOGS}
            error = NativeError(**{**words, "say": Saying.read(item["say"])})
            for log in LOGS:
                codes[log].update(dict.fromkeys(item[log], error))
        answers = {name: Saying.read(saying) for name, saying in document["answers"].items()}
        return cls(codes, answers, refusals=document["refusals"], waits=document["waits"])


def is_code(native: str) -> bool:
    """One word: the name of an error. A sentence is none."""
    return _WORD.fullmatch(native) is not None


class InForce:
    """Those by which this process goes: the shipped ones, until others are made active. Any thread may look."""

    def __init__(self) -> None:
        self._errors: Errors | None = None

    @property
    def errors(self) -> Errors:
        return self._errors or shipped_errors()

    def use(self, errors: Errors | None) -> None:
        """From now on; None: the shipped ones."""
        self._errors = errors


IN_FORCE = InForce()


def load_errors(path: Path) -> Errors:
    """Read the file, or raise all that is wrong with it."""
    document, problems = load_document(path)
    root = document.root
    codes: dict[str, dict[str, NativeError]] = {log: {} for log in LOGS}
    answers: dict[str, Saying] = {}
    refusals: dict[str, str] = {}
    waits: dict[str, int] | None = None
    no_error: dict[str, list[str]] = {log: [] for log in LOGS}
    if document.readable and _shaped(root, problems):
        places: dict[str, int] = {}
        for item in root["errors"].sequence():
            error = _error(item, problems)
            for log in LOGS:
                for code in _codes(item, log, places, problems):
                    if error is not None:
                        codes[log][code] = error
        no_error = {log: _codes(root["no_error"], log, places, problems) for log in LOGS}
        answers = {name: _saying(node, problems) for name, node in root["answers"].items()}
        if "refusals" in root:
            refuse_unknown_keys(root["refusals"], CONDITIONS, problems)
            refusals = {name: _say(node, problems) for name, node in root["refusals"].items()}
        if "waits" in root:
            waits = {name: _wait_ms(node, problems) for name, node in root["waits"].items()}
    if problems:
        raise MappingProblems(sorted(problems, key=lambda problem: (problem.line, problem.column)))
    return Errors(codes, answers, no_error, refusals, waits)


def _shaped(root: Node, problems: list[Problem]) -> bool:
    shapes = {"version": "integer", "errors": "sequence", "no_error": "mapping", "answers": "mapping"}
    shapes |= dict.fromkeys(_OPTIONAL, "mapping")
    if not root.is_mapping:
        problems.append(root.problem(f"a mapping belongs here, not a {root.kind}", f"write {', '.join(shapes)}"))
        return False
    refuse_unknown_keys(root, shapes, problems)
    for key, kind in shapes.items():
        node = root.get(key)
        if node is None and key in _OPTIONAL:
            continue  # those that are shipped hold
        if node is None or node.kind != kind:
            problems.append((node or root).problem(f"{key} is no {kind}", f"write {key}: as a {kind}"))
    if not problems and root["version"].content != 1:
        problems.append(root["version"].problem("this version is not known", "write version: 1"))
    return not problems


def _error(item: Node, problems: list[Problem]) -> NativeError | None:
    count = len(problems)
    if not item.is_mapping:
        problems.append(item.problem(f"a mapping belongs here, not a {item.kind}", "write id, kafka, sqlite, ..."))
        return None
    refuse_unknown_keys(item, _KEYS, problems)
    problems.extend(item.problem(f"{key} is missing", f"write {key}: ...") for key in _KEYS if key not in item)
    for key, known in _WORDS.items():
        node = item.get(key)
        if node is not None and node.content not in known:
            problems.append(node.problem(f"{key} cannot be {node.content}", suggest(str(node.content), known)))
    after = item.get("retry_after_ms")
    if after is not None and after.kind not in ("integer", "null"):
        problems.append(after.problem("retry_after_ms is no whole number", "write milliseconds, or null"))
    saying = _saying(item["say"], problems) if "say" in item else Saying("")
    if len(problems) > count:
        return None
    words = {key: str(item[key].content) for key in ("id", "cause", "scope", "retry", "because")}
    return NativeError(retry_after_ms=item["retry_after_ms"].content, say=saying, **words)


def _codes(item: Node, log: str, places: dict[str, int], problems: list[Problem]) -> list[str]:
    node = item.get(log)
    codes = []
    for entry in node.sequence() if node is not None and node.is_sequence else ():
        code = str(entry.content)
        if code in places:
            problems.append(entry.problem(f"{code} stands on line {places[code]} too", "keep one"))
        places.setdefault(code, entry.line)
        codes.append(code)
    return codes


def _saying(node: Node, problems: list[Problem]) -> Saying:
    """A text, or one for each moment at which a peer waits."""
    if not node.is_mapping:
        return Saying(_say(node, problems))
    refuse_unknown_keys(node, WAITED, problems)
    problems.extend(
        node.problem(f"{moment} is missing", f"write {moment}: ...") for moment in WAITED if moment not in node
    )
    at = {moment: _say(text, problems) for moment, text in node.items()}
    return Saying(at.get("publish", ""), tuple({**at, "later": at.get("attach", "")}.items()))


def _say(node: Node, problems: list[Problem]) -> str:
    text = str(node.content)
    if node.kind != "text" or not 0 < len(text.encode()) <= SAY_BYTES_MAX:
        message = f"the text has {len(text.encode())} octets, or is no text"
        problems.append(node.problem(message, f"say in 1 to {SAY_BYTES_MAX} octets what to do"))
    return text


def _wait_ms(node: Node, problems: list[Problem]) -> int:
    if node.kind == "integer" and int(node.content) > 0:
        return int(node.content)
    problems.append(node.problem("what a peer waits is no whole number above 0", "write milliseconds"))
    return 0


def errors_of(directory: Path | None) -> tuple[Errors, list[Problem]]:
    """Those of DIRECTORY, where it has some of its own, else the shipped ones; or what is wrong with them."""
    path = (directory or SHIPPED) / FILE
    if directory is None or not path.is_file():
        return shipped_errors(), []
    try:
        return load_errors(path), []
    except MappingProblems as error:
        return Errors({log: {} for log in LOGS}, {}), error.problems


def usable_errors_of(directory: Path | None) -> tuple[Errors, list[Problem]]:
    """The same for a realm: they must have every code that the shipped ones have, because a missing one would count as
    unexpected."""
    errors, problems = errors_of(directory)
    if directory is not None and not problems and errors is not shipped_errors():
        problems = _left_out(errors, directory / FILE)
    return errors, problems


def _left_out(errors: Errors, path: Path) -> list[Problem]:
    """What only the shipped file speaks of: a release has brought it, or it was deleted."""
    shipped, problems = shipped_errors(), []
    for log in LOGS:
        missing = sorted(shipped.codes[log].keys() - errors.codes[log].keys() - {*errors.no_error[log]})
        if missing:
            few = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            remedy = "copy what the shipped errors.yaml says of them"
            problems.append(Problem(str(path), 1, f"codes of {log} are missing: {few}", remedy))
    missing = sorted(shipped.answers.keys() - errors.answers.keys())
    if missing:
        problems.append(Problem(str(path), 1, f"answers are missing: {', '.join(missing)}", "copy the shipped ones"))
    return problems


@cache
def shipped_errors() -> Errors:
    """Read once, when something first asks."""
    return load_errors(SHIPPED / FILE)
