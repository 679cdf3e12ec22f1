"""Which kind of error an entry of `/api/errors` is, and which peers met it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NamedTuple

from gateway.verdict.answers import Row
from mappings.compiler.errors import errors_of, is_code

ELSEWHERE: Final = ("access-denied", "too-large-for-the-consumer")  # faults that are counted as errors as well
TURNED_AWAY: Final = ("login", "fault")
"""Rules of peers that had no connection yet: what turned them away is counted as a fault as well."""
_TABLE: Final = "fault."
"""Before the name of each rule of table `fault`: it decides about faults only, and each fault is counted as one."""
GIVEN_UP: Final = "given-up"
"""What a consumer gave up is no error that a peer got."""
WHO_MAX: Final = 20


class Kind(NamedTuple):
    """One row of the board. `code`: the log's own, or the realm's answer, or the fault."""

    klass: str
    condition: str
    code: str
    rule: str

    @property
    def is_fault(self) -> bool:
        return self.rule == f"fault.{self.code}"

    @property
    def address(self) -> dict[str, str]:
        """As parameters of a URL."""
        return {"class": self.klass, "condition": self.condition, "code": self.code, "rule": self.rule}


def is_counted_as_fault(rule: str) -> bool:
    """Is an error of that rule in the counter of faults as well, which has faults that no rule decided about, too?"""
    return rule in TURNED_AWAY or rule.startswith(_TABLE)


def kind_of_entry(error: Row) -> Kind:
    if error["fault"] and error["fault"] not in ELSEWHERE:
        return Kind("fatal", "", error["fault"], f"fault.{error['fault']}")
    code = code_of(error)
    return Kind(board_class(class_of(error), code), error["condition"] or "", code, error["rule"] or "")


def board_class(klass: str, code: str) -> str:
    if code and is_indeterminate(code):
        return "indeterminate"
    return klass if klass in ("fatal", "transient") else "other"


@cache
def is_indeterminate(code: str) -> bool:
    """The log's code, or the realm's answer, leaves open whether it was done."""
    named = errors_of(None)[0].named(code)
    return code == "indeterminate" or (named is not None and named.cause == "indeterminate")


def code_of(error: Row) -> str:
    """The fault, or the log's own code where it is one word, else the realm's answer.
    Source: gateway/evidence/counters.py."""
    native = error["native"] or ""
    return error["fault"] or (native if is_code(native) else error["answer"] or "")


def class_of(error: Row) -> str:
    """A refused attach, a fault and a failed login have no class: they end what they concern."""
    return error["class"] or ("" if error["what"] == "delivery" else "fatal")


def who_of(entries: Iterable[Row]) -> list[dict[str, Any]]:
    """Peers that met it, the most often first."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for entry in entries:
        who = entry["container"] or "", entry["user"] or "", entry["address"] or ""
        counts[who] += int(entry["count"] or 0)
    return [
        {"container": container, "user": user, "address": address, "count": count}
        for (container, user, address), count in counts.most_common(WHO_MAX)
    ]
