"""The words of the tables about links that attach: `attach`, `attached`.

Source: semantics reference sections 1 and 2.O.
"""

from __future__ import annotations

from mappings.language.words import CLASS, CONDITION, CONDITIONS, NOTHING, Law, TableWords, Word

DURABILITY = ("none", "configuration", "unsettled-state")
_DIRECTION = ("publish", "subscribe")
_NAMED = ("durable", "shared", "volatile")

ATTACH = TableWords(
    "attach",
    {
        "direction": _DIRECTION,
        "address": ("node", "none", "dynamic", "coordinator"),
        "node_kind": ("queue", "channel", "unknown"),
        "distribution_mode": ("unset", "move", "copy", "other"),
        "source_durability": DURABILITY,
        "filter": ("none", "selector", "position", "unsupported"),
        "sharing": ("exclusive", "shared"),
    },
    {
        "native": Word(("none", "publish", "relay", "create", "subscribe", "recall", "coordinate")),
        "subscription": Word(("none", "queue", "browse", "plain", "durable", "shared", "volatile")),
        "attach": Word(("confirm", "refuse")),
        "condition": CONDITION,
        "on_close": Word(("keep", "end"), ("keep",)),
        "belongs_to": Word(("realm", "user"), ("realm",)),
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
        Law("only a durable outlasts its links", {"on_close": ("end",)}, {"subscription": ("durable", "shared")}),
        Law(
            "only a durable belongs to its user, where a link subscribes to it or recalls it",
            {"belongs_to": ("user",)},
            {"native": ("subscribe", "recall"), "subscription": ("none", *_NAMED)},
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
            "kind-differs",
            "indeterminate",
            "unavailable",
        ),
        "moment": ("attach", "later"),
    },
    {
        "attach": Word(("confirm", "refuse", "detach", "keep")),
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
            "only a publisher is kept, which has nothing in flight of the realm's",
            {"attach": ("keep",)},
            {"condition": NOTHING, "class": NOTHING, "in_flight": ("none",)},
            {"direction": ("publish",), "moment": ("later",)},
        ),
        Law(
            "a link is detached once it was attached, with a condition",
            {"attach": ("detach",)},
            {"condition": CONDITIONS, "class": ("fatal",)},
            {"moment": ("later",)},
        ),
    ),
)
