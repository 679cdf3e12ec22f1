"""What a peer hears of an attach that was refused, where we know better than the realm's answer what to say: who may,
and what to do. No other user is named."""

from __future__ import annotations

from typing import Final

from native_backend.access.durable_owner import NOT_OWNED

OWNED: Final = "only the connection that created it may consume from it"
NAME_IN_USE: Final = "another user's link of this container has this name"
BY_NATIVE: Final = {
    NOT_OWNED: "only the user who made this durable may use it; take another name, or ask for any-durable",
}
"""By the realm's native code."""
