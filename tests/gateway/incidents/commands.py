"""What each command prints of the incidents of `causes.py`: the words that an operator needs stand in its answer."""

from __future__ import annotations

from typing import Final

OF_THE_GATEWAY: Final = {
    "errors --since 10m --node oders": (
        "oders",
        "shop",
        "attach.refuse-an-unknown-node",
        "realmgate node create oders",
    ),
    "errors --container large": ("letters", "large", "fault.message-too-large", "raise limits.message_size_bytes"),
    "denials --since 10m": (
        "ann",
        "guarded",
        "attached.access-denied-refused",
        "realmgate acl grant user:ann publish --node guarded",
    ),
    "errors --user ben": ("ben", "failed-login", "127.0.0.1", "correct the password"),
    "errors --node small": (
        "small",
        "filler",
        "published.capacity-reached-rejected",
        "amqp:resource-limit-exceeded",
        "realmgate node set small capacity-events=N",
    ),
    "links --node held": ("held", "holder", "UNSETTLED", "OLDEST", "NO CREDIT"),
    "links --node waiting": ("waiting", "sleepy", "accepted 1"),
}
"""With `--gateway URL`."""

OF_THE_REALM: Final = {
    "queue peek dead": ("rejected", "jobs", "app:bad", "cannot parse order 4711"),
    "node list": ("gone", "topic missing", "realmgate node delete"),
}
"""With `--config FILE`."""
