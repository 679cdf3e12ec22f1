"""The words of the tables about transactions: `capability`, `coordinate`, `committed`, `posted`.

Source: semantics reference sections 1 (rows T-*) and 2.W.
"""

from __future__ import annotations

from mappings.language.words import (
    CLASS,
    CLASS_LAWS,
    CONDITION,
    FLAG,
    LISTED,
    NO_YES,
    NOTHING,
    SETTLES,
    TRANSACTION,
    Law,
    TableWords,
    Word,
    accepted_when,
    listed_only,
    told_unsettled_only,
)

CAPABILITY = TableWords(
    "capability",
    {
        "capability": (
            "local-transactions",
            "distributed-transactions",
            "promotable-transactions",
            "multi-txns-per-ssn",
            "multi-ssns-per-txn",
        )
    },
    {"offered": Word(FLAG)},
    of_node=False,
)

_COMMIT_FAILURES = ("access-denied", "capacity-reached", "not-found", "too-large", "unexpected")

COORDINATE = TableWords(
    "coordinate",
    {
        "request": ("declare", "commit", "rollback", "unreadable"),
        "transaction": ("none", "open", "doomed", "torn", "expired", "unknown", "distributed", "full"),
        "presettled": NO_YES,
        "rejected": LISTED,
    },
    {
        "native": Word(("none", "begin", "commit", "rollback")),
        "outcome": Word(("none", "declared", "accepted", "rejected")),
        "settle": SETTLES,
        "condition": CONDITION,
        "class": CLASS,
    },
    (
        Law(
            "a transaction is begun by a declare, and told so",
            {"native": ("begin",)},
            {"outcome": ("declared",), "settle": (True,), "condition": NOTHING, "class": NOTHING},
            {"request": ("declare",), "transaction": ("none", "open"), "presettled": ("no",)},
        ),
        Law("declared tells of a transaction that is begun", {"outcome": ("declared",)}, {"native": ("begin",)}),
        Law(
            "a commit is answered later",
            {"native": ("commit",)},
            {"outcome": ("none",), "settle": (False,), "condition": NOTHING, "class": NOTHING},
            {"request": ("commit",), "transaction": ("open",)},
        ),
        Law(
            "only a transaction that is there is rolled back",
            {"native": ("rollback",)},
            {},
            {"request": ("commit", "rollback"), "transaction": ("open", "doomed", "torn", "expired")},
        ),
        Law(
            "accepted tells that what was asked for is done",
            {"outcome": ("accepted",)},
            {"native": ("rollback",), "condition": NOTHING, "class": NOTHING},
            {"request": ("rollback",)},
        ),
        told_unsettled_only("declared", "accepted", "rejected"),
        listed_only("rejected"),
        *CLASS_LAWS,
    ),
    of_node=False,
)

COMMITTED = TableWords(
    "committed",
    {"answer": ("done", *_COMMIT_FAILURES, "indeterminate"), "rejected": LISTED},
    {"outcome": Word(("none", "accepted", "rejected")), "settle": SETTLES, "condition": CONDITION, "class": CLASS},
    (accepted_when("only what is done is accepted", "done"), listed_only("rejected"), *CLASS_LAWS),
    of_node=False,
)

POSTED = TableWords(
    "posted",
    {
        "answer": ("ready", "access-denied", "capacity-reached", "unexpected", "not-found"),
        "presettled": NO_YES,
        "receiver_settle_mode": ("first", "second"),
        "rejected": LISTED,
    },
    {
        "outcome": Word(("none", "accepted", "rejected")),
        "settle": SETTLES,
        "condition": CONDITION,
        "class": CLASS,
        "transaction": TRANSACTION,
    },
    (
        accepted_when("only what can be stored is accepted", "ready", transaction=("keep",)),
        Law(
            "where the publisher settles first, nothing is settled before it",
            {"settle": (True,)},
            {},
            {"receiver_settle_mode": ("first",)},
        ),
        listed_only("rejected"),
        Law("what is settled has been told", {"settle": (True,)}, {"outcome": ("accepted", "rejected")}),
        told_unsettled_only("accepted", "rejected"),
        *CLASS_LAWS,
    ),
)
