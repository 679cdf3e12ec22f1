"""What a check found: one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "FAIL", "not looked at"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`words`: what it is, or why it was not looked at. `remedy`: what to do; empty where nothing is to be done."""

    check: str
    status: Status
    words: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.status:<13}  {self.check:<13}  {self.words}{f': {self.remedy}' if self.remedy else ''}"


def ok(check: str, words: str) -> Finding:
    return Finding(check, "ok", words)


def warn(check: str, words: str, remedy: str) -> Finding:
    return Finding(check, "warn", words, remedy)


def fail(check: str, words: str, remedy: str) -> Finding:
    return Finding(check, "FAIL", words, remedy)


def not_looked_at(check: str, why: str) -> Finding:
    return Finding(check, "not looked at", why)
