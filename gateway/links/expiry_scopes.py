"""The scopes of one connection that durables may be bound to: their time-out begins when the link, its session or the
connection ends, as the terms of the durable say.

Of one durable that is attached again and again in a session one entry is kept. Source: semantics.md 2.L-2; AMQP 1.0
part 3, 3.5.6.
"""

from __future__ import annotations

from native_backend.subscriptions.subscription import Subscription

_CONNECTION = 0  # no session's number


class ExpiryScopes:
    """Subscriptions whose links have gone, until their scope goes, too."""

    def __init__(self) -> None:
        self._left: dict[tuple[int, int, str], Subscription] = {}  # by session, store and durable

    def leave(self, subscription: Subscription, session: int) -> None:
        """Its link has ended, and it is closed."""
        expiry = subscription.terms.expiry
        if expiry not in ("session-end", "connection-close"):
            subscription.release()
            return
        scope = session if expiry == "session-end" else _CONNECTION
        key = scope, subscription.node.store, subscription.durable or ""
        earlier = self._left.get(key)
        self._left[key] = subscription
        if earlier is not None:
            earlier.release()

    def forget(self, subscription: Subscription) -> None:
        """Its scope is over at once: the durable is given up."""
        for key in [key for key, left in self._left.items() if left is subscription]:
            self._left.pop(key).release()

    def end_session(self, session: int | None) -> None:
        for key in [key for key in self._left if key[0] == session]:
            self._left.pop(key).release()

    def end(self) -> None:
        """The connection has gone."""
        while self._left:
            self._left.popitem()[1].release()
