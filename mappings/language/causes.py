"""What the realm makes of a cause: which answer the tables are asked about, or what it does without an answer to a
peer.

A native error has one cause (`errors.yaml`). Which one counts depends on the stage: `unsent`, while it is certain that
the log was not asked to make it true (a record that a producer did not take, whatever comes before a COMMIT, an error
that says of itself that nothing was stored), and `sent`. Which answer a cause is depends on the moment at which a peer
waits:

    attach   a link attaches                        table `attached`
    later    a subscription reads on                table `attached`
    publish  a batch is appended                    table `published`
    settle   the journal stores settlements         table `settled`
    commit   the journal stores a transaction       table `committed`

The realm decides by these very columns (`native_backend/dispatch/context.py`, `publisher.py`, `journal.py`, the
drivers), and the error table is expanded by them. Source: kafka.md section 7.
"""

from __future__ import annotations

from collections.abc import Mapping

CAUSES = (
    "not-found",
    "too-large",
    "invalid",
    "capacity-reached",
    "refused",
    "fenced",
    "indeterminate",
    "retention",
    "unavailable",
    "unexpected",
)
TABLES_OF: Mapping[str, str] = {
    "attach": "attached",
    "later": "attached",
    "publish": "published",
    "settle": "settled",
    "commit": "committed",
}
MOMENTS = tuple(TABLES_OF)
STAGES = ("unsent", "sent")

_SUBSCRIBE = {
    "not-found": "not-found",
    "refused": "access-denied",
    "fenced": "in-use",
    "indeterminate": "indeterminate",
    "unavailable": "unavailable",
    "capacity-reached": "unavailable",
}
_PUBLISH = {
    "not-found": "not-found",
    "too-large": "too-large",
    "invalid": "invalid",
    "capacity-reached": "capacity-reached",
    "refused": "access-denied",
    "indeterminate": "indeterminate",
    "unavailable": "unavailable",
}
_SETTLE = {"refused": "access-denied", "not-found": "not-found", "indeterminate": "indeterminate"}


def _total(answers: Mapping[str, str]) -> Mapping[str, str]:
    return {cause: answers.get(cause, "unexpected") for cause in CAUSES}


ANSWERS: Mapping[str, Mapping[str, str]] = {  # moment -> cause -> answer
    "attach": _total(_SUBSCRIBE),
    "later": _total(_SUBSCRIBE),
    "publish": _total(_PUBLISH),
    "settle": _total(_SETTLE),
    "commit": _total({**_SETTLE, "too-large": "too-large", "capacity-reached": "capacity-reached"}),
}

# No peer hears of it: what is certainly not done is asked for again (what settles waits for room, too; a commit does
# not: its peer can do it again); what may be done is looked up, and answered as it is (what is fenced too: Kafka says
# so also of a transaction that took too long); what is kept no more is passed over.
_JOURNAL = {"unavailable": "asked-again", "indeterminate": "looked-up", "fenced": "looked-up"}
_READ = dict.fromkeys(
    ("too-large", "invalid", "capacity-reached", "indeterminate", "unavailable", "unexpected"), "asked-again"
)
_NOT_DONE = ("unavailable", "capacity-reached")
UNANSWERED: Mapping[str, Mapping[str, str]] = {  # moment -> cause -> what the realm does
    "attach": {},
    "later": {**_READ, "retention": "passed-over"},
    "publish": {},
    "settle": {**_JOURNAL, "capacity-reached": "asked-again"},
    "commit": _JOURNAL,
}


def answered(moment: str) -> tuple[str, ...]:
    """The causes that a peer gets an answer for."""
    return tuple(cause for cause in CAUSES if cause not in UNANSWERED[moment])


def unanswered(moment: str, what: str) -> tuple[str, ...]:
    """The causes that the realm deals with in this way."""
    return tuple(cause for cause, done in UNANSWERED[moment].items() if done == what)


def unsent(cause: str) -> str:
    """What was certainly not sent is not in doubt, whatever the error says of others."""
    return "unavailable" if cause == "indeterminate" else cause


def at_commit(cause: str) -> str:
    """What fails while SQLite commits is in doubt, but for what it certainly refuses."""
    return cause if cause in _NOT_DONE else "indeterminate"


def in_transaction(cause: str, answered: bool) -> str:
    """What SQLite certainly refused, for one of the many that a transaction stores: what publishes or commits is
    answered that there is no room; evidence waits for it."""
    return cause if answered and cause == "capacity-reached" else "unavailable"


ONE_TRANSACTION = frozenset({"sqlite"})
"""Logs that store what many asked for in one transaction: an error before its end says nothing about each of them."""


def cause_at(log: str, cause: str, moment: str, stage: str) -> str:
    """The cause that counts when a driver meets an error of this one."""
    waits = moment in ("publish", "settle", "commit")
    if log in ONE_TRANSACTION:
        if cause == "capacity-reached":
            return in_transaction(cause, waits)
        return at_commit(cause) if stage == "sent" and waits else "unavailable"
    if not waits:
        return cause
    if stage == "unsent":
        return unsent(cause)
    return cause if moment == "publish" else "indeterminate"
