"""The words of the mapping tables: which tables there are, their axes, what `then` may say, and what would be nonsense.

This is `docs/tables-vocabulary.md` as data: the first axis is the slowest. Anything open-ended (names, numbers,
errors of a log) has been classified before it becomes a fact; every axis is finite. A *law* forbids a `then` that no
sender of frames could carry out, or that would be a lie (`accepted` for an event that is not stored); what is left is
the operator's choice.

Source: semantics reference sections 1, 2, 3.6.
"""

from __future__ import annotations

from collections.abc import Mapping

from mappings.language.attach_words import ATTACH, ATTACHED, DURABILITY
from mappings.language.transaction_words import CAPABILITY, COMMITTED, COORDINATE, POSTED
from mappings.language.words import (
    CLASS,
    CLASS_LAWS,
    CONDITION,
    CONDITIONS,
    FLAG,
    LISTED,
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
    listed_only,
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
_OF_MESSAGES = ("message-malformed", "annotation-unknown", "annotation-invalid")

PUBLISH = TableWords(
    "publish",
    {
        "framing": ("whole", "partial"),
        "transformed": ("event", "null"),
        "transactional": ("no", "open", "full", "doomed", "unknown"),
        "sender_settle_mode": _SENDER_SETTLE_MODE,
        "presettled": NO_YES,
        "rejected": LISTED,
        "released": LISTED,
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
            "a message that is passed on gets its outcome later",
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
        listed_only("rejected"),
        listed_only("released"),
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
            "invalid",
            "indeterminate",
            "unavailable",
            "rolled-back",
        ),
        "sender_settle_mode": _SENDER_SETTLE_MODE,
        "presettled": NO_YES,
        "rejected": LISTED,
        "released": LISTED,
    },
    {
        "outcome": Word(("none", "accepted", "rejected", "released", "modified")),
        "settle": SETTLES,
        "condition": CONDITION,
        "class": CLASS,
    },
    (
        accepted_when("only what is stored is accepted", "stored"),
        listed_only("rejected"),
        listed_only("released"),
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
        "state": ("sent-settled", "too-large", *_STATES, "received", *_TRANSACTIONAL, "unknown"),
        "already_settled": NO_YES,
        "subscription": ("queue", "plain", "durable", "browse"),
        "source_durability": DURABILITY,
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
            "a plain subscription has nothing in the realm that could end",
            {"native": ("acknowledge", "discard", "dead-letter")},
            {},
            {"subscription": ("queue", "durable")},
        ),
        Law(
            "what is only looked at is not given back",
            {"native": ("return",)},
            {},
            {"subscription": ("queue", "plain", "durable")},
        ),
        Law("a copy has no other link", {"elsewhere": (True,)}, {}, {"subscription": ("queue", "durable")}),
        Law(
            "an operation of the realm gets its outcome from `settled`, when the realm has answered",
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
            "a settled delivery gets no outcome",
            {"outcome": ("accepted", "rejected", "released", "modified")},
            {},
            {"state": (*_STATES, "received", *_TRANSACTIONAL, "unknown"), "already_settled": ("no",)},
        ),
        Law(
            "only the state accepted is answered with accepted",
            {"outcome": ("accepted",)},
            {},
            {"state": ("accepted",)},
        ),
        Law(
            "an enlisted delivery gets its outcome later, and only a transaction can hold it",
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
    {"outcome": Word(("asked", "none", "rejected")), "settle": SETTLES, "condition": CONDITION, "class": CLASS},
    (
        Law(
            "the requested outcome is given only when it is done",
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
            "too-many-durables",
            "too-many-stores",
            "invalid-terminus",
            "idle",
            "idle-time-out-not-kept",
            *_OF_MESSAGES,
            "outcome-unknown",
            "delivery-mode-forced",
            "session-in-use",
            "delivery-tag-too-long",
            "settle-mode-not-agreed",
            "transfer-contradicts",
            "answer-too-large",
            "invalid-field-of-link",
            "invalid-field-of-session",
            "invalid-field-of-connection",
            "delivery-id-out-of-order",
            "disposition-out-of-range",
            "too-many-containers",
            "too-many-connections",
            "too-much-unfinished",
            "too-much-held",
        )
    },
    {"scope": Word(("link", "session", "connection", "message")), "condition": Word(CONDITIONS)},
    (Law("only a message can be turned away by itself", {"scope": ("message",)}, {}, {"fault": _OF_MESSAGES}),),
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
