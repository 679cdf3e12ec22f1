"""The words of the mapping tables: which tables there are, their axes, what `then` may say, and what would be nonsense.

This is `docs/tables-vocabulary.md` as data: the first axis is the slowest. Anything open-ended (names, numbers,
errors of a log) has been classified before it becomes a fact; every axis is finite. A *law* forbids a `then` that no
sender of frames could carry out, or that would be a lie (`accepted` for an event that is not stored); what is left is
the operator's choice.

Source: semantics reference sections 1, 2, 3.6. May import: `mappings.words`, `mappings.transaction_words`.
"""

from __future__ import annotations

from collections.abc import Mapping

from mappings.transaction_words import CAPABILITY, COMMITTED, COORDINATE, POSTED
from mappings.words import (
    CLASS,
    CLASS_LAWS,
    CONDITION,
    CONDITIONS,
    FLAG,
    NO_YES,
    NODE_CLASS,
    NOTHING,
    SETTLES,
    TRANSACTION,
    Law,
    TableWords,
    Value,
    Word,
    accepted_when,
    told_unsettled_only,
)

__all__ = [
    "BASES",
    "CONDITIONS",
    "DEFAULT_PROFILE",
    "HIT_POLICY",
    "NODE_CLASS",
    "PROFILES",
    "TABLES",
    "Law",
    "TableWords",
    "Value",
    "Word",
]

BASES: Mapping[str, str | None] = {"um-9.9": "um-9.10", "um-9.10": "um-9.12", "um-9.12": None, "extended": "um-9.12"}
PROFILES = tuple(BASES)  # each with the profile that it extends in tables that do not mention it
DEFAULT_PROFILE = "extended"
HIT_POLICY = "unique"

_MODIFIED = ("modified", "modified-failed", "modified-undeliverable", "modified-failed-undeliverable")
_STATES = ("accepted", "rejected", "released", *_MODIFIED)

_TRANSACTIONAL = ("transactional", "transactional-full", "transactional-unknown")
_SENDER_SETTLE_MODE = ("unsettled", "settled", "mixed")
_DURABILITY = ("none", "configuration", "unsettled-state")
_DIRECTION = ("publish", "subscribe")
_NAMED = ("durable", "shared", "volatile")
_OF_MESSAGES = ("message-malformed", "annotation-unknown", "annotation-invalid")

ATTACH = TableWords(
    "attach",
    {
        "direction": _DIRECTION,
        "address": ("node", "none", "dynamic", "coordinator"),
        "node_kind": ("queue", "channel", "unknown"),
        "distribution_mode": ("unset", "move", "copy", "other"),
        "source_durability": _DURABILITY,
        "filter": ("none", "selector", "position", "unsupported"),
        "sharing": ("exclusive", "shared"),
    },
    {
        "native": Word(("none", "publish", "relay", "create", "subscribe", "recall", "coordinate")),
        "subscription": Word(("none", "queue", "browse", "plain", "durable", "shared", "volatile")),
        "attach": Word(("confirm", "refuse")),
        "condition": CONDITION,
    },
    (
        Law(
            "a refused link needs a condition and does nothing",
            {"attach": ("refuse",)},
            {"condition": CONDITIONS, "native": ("none",), "subscription": ("none",)},
        ),
        Law(
            "a confirmed link publishes, relays, subscribes, recalls or coordinates, and has no condition",
            {"attach": ("confirm",)},
            {"condition": NOTHING, "native": ("publish", "relay", "create", "subscribe", "recall", "coordinate")},
        ),
        Law(
            "relay is for links that name no target",
            {"native": ("relay",)},
            {"subscription": ("none",)},
            {"direction": ("publish",), "address": ("none",)},
        ),
        Law(
            "create is for links that ask for a dynamic node; what they do with it is decided once it is there",
            {"native": ("create",)},
            {"subscription": ("none",)},
            {"address": ("dynamic",)},
        ),
        Law(
            "recall is for links that name no source",
            {"native": ("recall",)},
            {"subscription": ("none",)},
            {"direction": ("subscribe",), "address": ("none",)},
        ),
        Law(
            "coordinate is for links whose target is a coordinator",
            {"native": ("coordinate",)},
            {"subscription": ("none",)},
            {"direction": ("publish",), "address": ("coordinator",)},
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
            {"subscription": ("queue", "browse", "plain", *_NAMED)},
            {"direction": ("subscribe",), "address": ("node",), "node_kind": ("queue", "channel")},
        ),
        Law("queue and browse are for queues", {"subscription": ("queue", "browse")}, {}, {"node_kind": ("queue",)}),
        Law("all others are for channels", {"subscription": ("plain", *_NAMED)}, {}, {"node_kind": ("channel",)}),
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
            "kind-differs",
            "indeterminate",
            "unavailable",
        ),
        "moment": ("attach", "later"),
    },
    {
        "attach": Word(("confirm", "refuse", "detach")),
        "in_flight": Word(("none", "rejected", "released")),
        "condition": CONDITION,
        "class": CLASS,
    },
    (
        Law(
            "only a link whose node is ready is confirmed, without a condition",
            {"attach": ("confirm",)},
            {"condition": NOTHING, "class": NOTHING, "in_flight": ("none",)},
            {"answer": ("ready",), "moment": ("attach",)},
        ),
        Law(
            "a link is refused while it attaches, when nothing is in flight",
            {"attach": ("refuse",)},
            {"condition": CONDITIONS, "in_flight": ("none",)},
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
        "transactional": ("no", "open", "full", "doomed", "unknown"),
        "sender_settle_mode": _SENDER_SETTLE_MODE,
        "presettled": NO_YES,
    },
    {
        "native": Word(("none", "publish", "reassemble")),
        "outcome": Word(("none", "rejected", "released")),
        "settle": SETTLES,
        "condition": CONDITION,
        "class": CLASS,
        "transaction": TRANSACTION,
    },
    (
        Law(
            "what is handed on is answered later",
            {"native": ("publish", "reassemble")},
            {"outcome": ("none",), "settle": (False,), "condition": NOTHING, "class": NOTHING},
        ),
        Law(
            "only a whole event can be published",
            {"native": ("publish",)},
            {},
            {"framing": ("whole",), "transformed": ("event",), "transactional": ("no", "open")},
        ),
        Law("only a partial delivery is reassembled", {"native": ("reassemble",)}, {}, {"framing": ("partial",)}),
        told_unsettled_only("rejected", "released"),
        *CLASS_LAWS,
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
            "rolled-back",
        ),
        "sender_settle_mode": _SENDER_SETTLE_MODE,
        "presettled": NO_YES,
    },
    {
        "outcome": Word(("none", "accepted", "rejected", "released", "modified")),
        "settle": SETTLES,
        "condition": CONDITION,
        "class": CLASS,
    },
    (
        accepted_when("only what is stored is accepted", "stored"),
        told_unsettled_only("accepted", "rejected", "released", "modified"),
        *CLASS_LAWS,
    ),
)

DEFAULT = TableWords(
    "default",
    {
        "cause": ("unstated", "silent", "lost", "cut-off", "stopped", "rolled-back"),
        "default_outcome": ("unset", *_STATES),
    },
    {"state": Word((*_STATES, "received"))},
    (Law("only silence is taken for nothing yet", {"state": ("received",)}, {}, {"cause": ("silent",)}),),
)

SETTLE = TableWords(
    "settle",
    {
        "state": (
            "sent-settled",
            *_STATES,
            "received",
            *_TRANSACTIONAL,
            "unknown",
        ),
        "already_settled": NO_YES,
        "subscription": ("queue", "plain", "durable"),
        "source_durability": _DURABILITY,
        "receiver_settle_mode": ("first", "second"),
        "attempts": ("below", "last"),
    },
    {
        "native": Word(("none", "acknowledge", "return", "discard", "dead-letter", "enlist")),
        "failed": Word(FLAG, (False,)),
        "elsewhere": Word(FLAG, (False,)),
        "outcome": Word(("none", "accepted", "rejected", "released", "modified")),
        "settle": SETTLES,
        "condition": CONDITION,
        "class": CLASS,
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
            {"condition": NOTHING, "class": NOTHING},
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
            {"state": (*_STATES, "received", *_TRANSACTIONAL, "unknown"), "already_settled": ("no",)},
        ),
        Law("accepted is told to who accepted", {"outcome": ("accepted",)}, {}, {"state": ("accepted",)}),
        Law(
            "what is enlisted is told later, and only a transaction can hold it",
            {"native": ("enlist",)},
            {"outcome": ("none",), "settle": (False,), "condition": NOTHING, "class": NOTHING},
            {"state": ("transactional",), "already_settled": ("no",)},
        ),
        Law("only a returned event counts a failure", {"failed": (True,)}, {"native": ("return",)}),
        Law("only a returned event goes elsewhere", {"elsewhere": (True,)}, {"native": ("return",)}),
        *CLASS_LAWS,
    ),
)

SETTLED = TableWords(
    "settled",
    {
        "operation": ("acknowledge", "return", "discard", "dead-letter"),
        "answer": ("done", "access-denied", "not-found", "unexpected", "indeterminate"),
        "peer_settled": NO_YES,
    },
    {
        "outcome": Word(("asked", "none", "rejected")),
        "settle": SETTLES,
        "condition": CONDITION,
        "class": CLASS,
    },
    (
        Law(
            "the outcome asked for is told only when it is done",
            {"outcome": ("asked",)},
            {"condition": NOTHING, "class": NOTHING},
            {"answer": ("done",)},
        ),
        *CLASS_LAWS,
    ),
)

FAULT = TableWords(
    "fault",
    {
        "fault": (
            "framing",
            "unknown-performative",
            "malformed-performative",
            "out-of-order",
            "over-credit",
            "message-too-large",
            "unattached-handle",
            "errant-link",
            "handle-in-use",
            "conflicting-outcome",
            "outcome-not-agreed",
            "transactional-acquisition",
            "link-name-in-use",
            "container-in-use",
            "container-taken-over",
            "too-many-links",
            "too-many-nodes",
            "invalid-terminus",
            "idle",
            *_OF_MESSAGES,
            "outcome-unknown",
            "delivery-mode-forced",
            "session-in-use",
            "delivery-tag-too-long",
            "settle-mode-not-agreed",
            "answer-too-large",
        )
    },
    {"scope": Word(("link", "session", "connection", "message")), "condition": Word(CONDITIONS)},
    (
        Law(
            "only a message can be turned away by itself",
            {"scope": ("message",)},
            {},
            {"fault": _OF_MESSAGES},
        ),
    ),
    of_node=False,
)

TABLES: Mapping[str, TableWords] = {
    words.name: words
    for words in (
        ATTACH,
        ATTACHED,
        PUBLISH,
        PUBLISHED,
        DEFAULT,
        SETTLE,
        SETTLED,
        FAULT,
        CAPABILITY,
        COORDINATE,
        COMMITTED,
        POSTED,
    )
}
