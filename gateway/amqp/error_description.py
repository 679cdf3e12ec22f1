"""What a peer is told when something could not be done: a description that names the node and says what to do, in fewer
than 120 octets, and the `info` map of the error, for programs: native-code, rule, and retry-after-ms where waiting
helps.

Source: AMQP 1.0 Part 2, 2.8.14. May import: `mappings`.
"""

from __future__ import annotations

from mappings import Decision
from mappings.errors import IN_FORCE, SAY_BYTES_MAX, Errors

DESCRIPTION_BYTES_MAX = 119
TOLD_BYTES_MAX = 240  # of any description: an error fits the smallest frame with it
RETRY_AFTER_MS = 1000  # where the log has said nothing

Info = tuple[tuple[str, str | int | bool], ...]  # a Symbol stays one


class Complaint(str):
    """A description that carries the pairs of its info map."""

    __slots__ = ("info",)

    info: Info

    def __new__(cls, description: str, info: Info = ()) -> Complaint:
        self = super().__new__(cls, description)
        self.info = info
        return self


def shortened(words: str) -> str:
    """What of it is told."""
    return words.encode()[:TOLD_BYTES_MAX].decode(errors="ignore")


def complaint(
    node: str, rule: Decision, answer: str | None = None, native: str | None = None, words: str = ""
) -> Complaint:
    """About what `rule` decided; `answer` is the realm's, None where it was not asked. `words`: where we know better
    than the answer what to say."""
    errors, native = IN_FORCE.errors, native or ""
    words = words or (_refusal(rule, errors) if answer is None else errors.say(answer, native))
    info: list[tuple[str, str | int]] = [("native-code", native)] if native else []
    info.append(("rule", f"{rule.table}.{rule.rule}"))
    if rule.then.get("class") == "transient":
        error = errors.named(native)
        info.append(("retry-after-ms", (error.retry_after_ms if error else None) or RETRY_AFTER_MS))
    return Complaint(_fitting(node, words), tuple(info))


def _refusal(rule: Decision, errors: Errors) -> str:
    """The rule in words, and what to do about it."""
    advice = errors.advise(str(rule.then["condition"]))
    words = rule.rule.replace("-", " ")[: SAY_BYTES_MAX - len(advice.encode())]  # an id is ASCII
    return f"{words}; {advice}" if advice else words


def _fitting(node: str, words: str) -> str:
    """The node's name gives way where both are too long."""
    room = DESCRIPTION_BYTES_MAX - len(words.encode()) - len(": ")
    name = node.encode()
    if len(name) > room:
        name = name[: max(room - len("..."), 0)] + b"..."
    return f"{name.decode(errors='ignore')}: {words}"
