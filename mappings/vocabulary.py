"""The words of the mapping tables: which tables there are, their axes, what `then` may say, and what would be nonsense.

This is `docs/tables-vocabulary.md` as data: the first axis is the slowest. Anything open-ended (names, numbers,
errors of a log) has been classified before it becomes a fact; every axis is finite. A *law* forbids a `then` that no
sender of frames could carry out, or that would be a lie (`accepted` for an event that is not stored); what is left is
the operator's choice.

Source: semantics reference sections 1, 2, 3.6. May import: the standard library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Value = str | bool | None

BASES: Mapping[str, str | None] = {"um-9.9": "um-9.10", "um-9.10": "um-9.12", "um-9.12": None, "extended": "um-9.12"}
PROFILES = tuple(BASES)  # each with the profile that it extends in tables that do not mention it
DEFAULT_PROFILE = "extended"
HIT_POLICY = "unique"

# AMQP 1.0 Part 2 (2.8.15 to 2.8.18) and Part 4 (4.5.8)
CONDITIONS = (
    "amqp:internal-error",
    "amqp:not-found",
    "amqp:unauthorized-access",
    "amqp:decode-error",
    "amqp:resource-limit-exceeded",
    "amqp:not-allowed",
    "amqp:invalid-field",
    "amqp:not-implemented",
    "amqp:resource-locked",
    "amqp:precondition-failed",
    "amqp:resource-deleted",
    "amqp:illegal-state",
    "amqp:frame-size-too-small",
    "amqp:connection:forced",
    "amqp:connection:framing-error",
    "amqp:connection:redirect",
    "amqp:session:window-violation",
    "amqp:session:errant-link",
    "amqp:session:handle-in-use",
    "amqp:session:unattached-handle",
    "amqp:link:detach-forced",
    "amqp:link:transfer-limit-exceeded",
    "amqp:link:message-size-exceeded",
    "amqp:link:redirect",
    "amqp:link:stolen",
    "amqp:transaction:unknown-id",
    "amqp:transaction:rollback",
    "amqp:transaction:timeout",
)


@dataclass(frozen=True, slots=True)
class Word:
    """A key of `then`: what it may say, and what it says when it is left out (no default: it must be written)."""

    values: tuple[Value, ...]
    default: tuple[Value, ...] = ()  # empty, or one value

    @property
    def required(self) -> bool:
        return not self.default


@dataclass(frozen=True, slots=True)
class Law:
    """Where `then` says `given`, it must say `then` too, and the rule may hold for `facts` only."""

    says: str
    given: Mapping[str, tuple[Value, ...]]
    then: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    facts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableWords:
    """One table: axes in order (first slowest), the keys of `then` in order, and the laws."""

    name: str
    axes: Mapping[str, tuple[str, ...]]
    then: Mapping[str, Word]
    laws: tuple[Law, ...] = ()


_NOTHING: tuple[Value, ...] = (None,)
_FLAG: tuple[Value, ...] = (False, True)
_CONDITION = Word((None, *CONDITIONS), _NOTHING)
_CLASS = Word((None, "fatal", "transient"), _NOTHING)
_SETTLE = Word(_FLAG)

_MODIFIED = ("modified", "modified-failed", "modified-undeliverable", "modified-failed-undeliverable")
_STATES = ("accepted", "rejected", "released", *_MODIFIED)

_SENDER_SETTLE_MODE = ("unsettled", "settled", "mixed")
_NO_YES = ("no", "yes")
_DURABILITY = ("none", "configuration", "unsettled-state")
_DIRECTION = ("publish", "subscribe")

_CLASS_LAWS = (
    Law("a fatal answer closes the link with a condition", {"class": ("fatal",)}, {"condition": CONDITIONS}),
    Law("a condition needs a class", {"condition": CONDITIONS}, {"class": ("fatal", "transient")}),
)

ATTACH = TableWords(
    "attach",
    {
        "direction": _DIRECTION,
        "address": ("node", "none", "dynamic", "coordinator"),
        "node_kind": ("queue", "channel", "unknown"),
        "distribution_mode": ("unset", "move", "copy", "other"),
        "source_durability": _DURABILITY,
        "filter": ("none", "unsupported"),
    },
    {
        "native": Word(("none", "publish", "subscribe")),
        "subscription": Word(("none", "queue", "plain", "durable")),
        "attach": Word(("confirm", "refuse")),
        "condition": _CONDITION,
    },
    (
        Law(
            "a refused link needs a condition and does nothing",
            {"attach": ("refuse",)},
            {"condition": CONDITIONS, "native": ("none",), "subscription": ("none",)},
        ),
        Law(
            "a confirmed link publishes or subscribes, and has no condition",
            {"attach": ("confirm",)},
            {"condition": _NOTHING, "native": ("publish", "subscribe")},
        ),
        Law(
            "publish is for links that publish to a node that is there",
            {"native": ("publish",)},
            {"subscription": ("none",)},
            {"direction": ("publish",), "address": ("node",), "node_kind": ("queue", "channel")},
        ),
        Law(
            "subscribe is for links that subscribe to a node that is there",
            {"native": ("subscribe",)},
            {"subscription": ("queue", "plain", "durable")},
            {"direction": ("subscribe",), "address": ("node",), "node_kind": ("queue", "channel")},
        ),
        Law("queue is for queues", {"subscription": ("queue",)}, {}, {"node_kind": ("queue",)}),
        Law(
            "plain and durable are for channels",
            {"subscription": ("plain", "durable")},
            {},
            {"node_kind": ("channel",)},
        ),
    ),
)

ATTACHED = TableWords(
    "attached",
    {
        "direction": _DIRECTION,
        "answer": (
            "ready",
            "access-denied",
            "unexpected",
            "not-found",
            "selector-invalid",
            "already-subscribed",
            "in-use",
            "indeterminate",
        ),
        "moment": ("attach", "later"),
    },
    {
        "attach": Word(("confirm", "refuse", "detach")),
        "in_flight": Word(("none", "rejected", "released")),
        "condition": _CONDITION,
        "class": _CLASS,
    },
    (
        Law(
            "only a link whose node is ready is confirmed, without a condition",
            {"attach": ("confirm",)},
            {"condition": _NOTHING, "class": _NOTHING, "in_flight": ("none",)},
            {"answer": ("ready",), "moment": ("attach",)},
        ),
        Law(
            "a link is refused while it attaches, when nothing is in flight",
            {"attach": ("refuse",)},
            {"condition": CONDITIONS, "class": ("fatal",), "in_flight": ("none",)},
            {"moment": ("attach",)},
        ),
        Law(
            "a link is detached once it was attached, with a condition",
            {"attach": ("detach",)},
            {"condition": CONDITIONS, "class": ("fatal",)},
            {"moment": ("later",)},
        ),
    ),
)

PUBLISH = TableWords(
    "publish",
    {
        "framing": ("whole", "partial"),
        "transformed": ("event", "null"),
        "transactional": _NO_YES,
        "sender_settle_mode": _SENDER_SETTLE_MODE,
        "presettled": _NO_YES,
    },
    {
        "native": Word(("none", "publish", "reassemble")),
        "outcome": Word(("none", "rejected", "released")),
        "settle": _SETTLE,
        "condition": _CONDITION,
        "class": _CLASS,
    },
    (
        Law(
            "what is handed on is answered later",
            {"native": ("publish", "reassemble")},
            {"outcome": ("none",), "settle": (False,), "condition": _NOTHING, "class": _NOTHING},
        ),
        Law(
            "only a whole event can be published",
            {"native": ("publish",)},
            {},
            {"framing": ("whole",), "transformed": ("event",), "transactional": ("no",)},
        ),
        Law("only a partial delivery is reassembled", {"native": ("reassemble",)}, {}, {"framing": ("partial",)}),
        Law(
            "nobody can be told the outcome of a presettled delivery",
            {"outcome": ("rejected", "released")},
            {},
            {"presettled": ("no",)},
        ),
        *_CLASS_LAWS,
    ),
)

PUBLISHED = TableWords(
    "published",
    {
        "answer": (
            "stored",
            "access-denied",
            "capacity-reached",
            "unexpected",
            "not-found",
            "too-large",
            "indeterminate",
            "unavailable",
        ),
        "sender_settle_mode": _SENDER_SETTLE_MODE,
        "presettled": _NO_YES,
    },
    {
        "outcome": Word(("none", "accepted", "rejected", "released", "modified")),
        "settle": _SETTLE,
        "condition": _CONDITION,
        "class": _CLASS,
    },
    (
        Law(
            "only what is stored is accepted",
            {"outcome": ("accepted",)},
            {"condition": _NOTHING, "class": _NOTHING},
            {"answer": ("stored",)},
        ),
        Law(
            "nobody can be told the outcome of a presettled delivery",
            {"outcome": ("accepted", "rejected", "released", "modified")},
            {},
            {"presettled": ("no",)},
        ),
        *_CLASS_LAWS,
    ),
)

DEFAULT = TableWords(
    "default",
    {
        "cause": ("unstated", "lost", "stopped"),
        "default_outcome": ("unset", *_STATES),
    },
    {"state": Word(_STATES)},
)

SETTLE = TableWords(
    "settle",
    {
        "state": ("sent-settled", *_STATES, "received", "transactional", "unknown"),
        "already_settled": _NO_YES,
        "subscription": ("queue", "plain", "durable"),
        "source_durability": _DURABILITY,
        "receiver_settle_mode": ("first", "second"),
        "attempts": ("below", "last"),
    },
    {
        "native": Word(("none", "acknowledge", "return", "discard", "dead-letter")),
        "failed": Word(_FLAG, (False,)),
        "elsewhere": Word(_FLAG, (False,)),
        "outcome": Word(("none", "accepted", "rejected", "released", "modified")),
        "settle": _SETTLE,
        "condition": _CONDITION,
        "class": _CLASS,
    },
    (
        Law(
            "a plain subscription has nothing in the realm to settle",
            {"native": ("acknowledge", "return", "discard", "dead-letter")},
            {},
            {"subscription": ("queue", "durable")},
        ),
        Law(
            "what the realm is asked is told when it has answered, by `settled`",
            {"native": ("acknowledge", "return", "discard", "dead-letter")},
            {"condition": _NOTHING, "class": _NOTHING},
        ),
        Law(
            "the realm settles a delivery once",
            {"native": ("acknowledge", "return", "discard", "dead-letter")},
            {},
            {"already_settled": ("no",)},
        ),
        Law(
            "nobody can be told the outcome of a delivery that is settled",
            {"outcome": ("accepted", "rejected", "released", "modified")},
            {},
            {"state": (*_STATES, "received", "transactional", "unknown"), "already_settled": ("no",)},
        ),
        Law("accepted is told to who accepted", {"outcome": ("accepted",)}, {}, {"state": ("accepted",)}),
        Law("only a returned event counts a failure", {"failed": (True,)}, {"native": ("return",)}),
        Law("only a returned event goes elsewhere", {"elsewhere": (True,)}, {"native": ("return",)}),
        *_CLASS_LAWS,
    ),
)

SETTLED = TableWords(
    "settled",
    {
        "operation": ("acknowledge", "return", "discard", "dead-letter"),
        "answer": ("done", "access-denied", "not-found", "unexpected", "indeterminate"),
        "peer_settled": _NO_YES,
    },
    {
        "outcome": Word(("asked", "none", "rejected")),
        "settle": _SETTLE,
        "condition": _CONDITION,
        "class": _CLASS,
    },
    (
        Law(
            "the outcome asked for is told only when it is done",
            {"outcome": ("asked",)},
            {"condition": _NOTHING, "class": _NOTHING},
            {"answer": ("done",)},
        ),
        *_CLASS_LAWS,
    ),
)

FAULT = TableWords(
    "fault",
    {
        "fault": (
            "framing",
            "unknown-performative",
            "malformed-performative",
            "over-credit",
            "message-too-large",
            "unattached-handle",
            "handle-in-use",
            "conflicting-outcome",
            "outcome-not-agreed",
            "transactional-acquisition",
            "link-name-in-use",
            "too-many-links",
            "idle",
        )
    },
    {"scope": Word(("link", "session", "connection")), "condition": Word(CONDITIONS)},
)

TABLES: Mapping[str, TableWords] = {
    words.name: words for words in (ATTACH, ATTACHED, PUBLISH, PUBLISHED, DEFAULT, SETTLE, SETTLED, FAULT)
}
