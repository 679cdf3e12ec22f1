"""The AMQP error that a peer gets when something could not be done: a description that names the node and says what to
do, in fewer than 120 octets, and the `info` map of the error, for programs: native-code where there is a code, rule,
and retry-after-ms where waiting helps.

Source: AMQP 1.0 Part 2, 2.8.14.
"""

from __future__ import annotations

from mappings import Decision
from mappings.compiler.errors import IN_FORCE, SAY_BYTES_MAX, Errors, is_code

DESCRIPTION_BYTES_MAX = 119
TOLD_BYTES_MAX = 240  # of any description: an error fits the smallest frame with it
MOMENTS = {
    "attached": "attach",
    "posted": "publish",
    "published": "publish",
    "settled": "settle",
    "committed": "commit",
}
"""What the peer waits for when a table decides. The description depends on it."""

Info = tuple[tuple[str, str | int | bool | bytes], ...]  # a Symbol stays one
_DELIVERY_TAG = "delivery-tag"  # AMQP anonymous terminus for message routing 1.0, 2.2.2


class ErrorDescription(str):
    """A description that carries the pairs of its info map."""

    __slots__ = ("info",)

    info: Info

    def __new__(cls, description: str, info: Info = ()) -> ErrorDescription:
        self = super().__new__(cls, description)
        self.info = info
        return self

    def about(self, tag: bytes) -> ErrorDescription:
        """The same, naming the message."""
        return ErrorDescription(self, (*self.info, (_DELIVERY_TAG, tag)))


def shortened(words: str) -> str:
    """As much of it as an error carries."""
    return words.encode()[:TOLD_BYTES_MAX].decode(errors="ignore")


def describe_error(
    node: str, rule: Decision, answer: str | None = None, native: str | None = None, words: str = ""
) -> ErrorDescription:
    """About what `rule` decided; `answer` is the realm's, None where it was not asked. `words`: where we know better
    than the answer what to say."""
    errors, native = IN_FORCE.errors, native or ""
    moment = MOMENTS.get(rule.table, "")
    words = words or (_refusal(rule, errors) if answer is None else errors.say(answer, native, moment))
    info: list[tuple[str, str | int | bool | bytes]] = [("native-code", native)] if is_code(native) else []
    name = f"{rule.table}.{rule.rule}"
    info.append(("rule", name))
    wait_ms = errors.wait_ms(name, answer, native) if rule.then.get("class") == "transient" else None
    if wait_ms is not None:
        info.append(("retry-after-ms", wait_ms))
    return ErrorDescription(_fitting(node, words), tuple(info))


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
