"""The subscriptions of one process: how they begin, and how they end when their subject may have them no more.

A durable has one link, or, where it is shared, as many as come; of one that is known as the one kind no link of the
other kind becomes part. May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

from functools import partial

from native_backend.access import SUBSCRIBING
from native_backend.admittance import Admittance
from native_backend.answers import Subscribed
from native_backend.dispatch import Dispatch
from native_backend.durables import QUEUE
from native_backend.endings import Endings
from native_backend.log import LogError
from native_backend.metadata import Metadata
from native_backend.nodes import Node
from native_backend.services import Services, store_bounds, subscribe_answer
from native_backend.shard import Shard
from native_backend.spread import Opened, SpreadSubscription, open_stores
from native_backend.starting import place_of
from native_backend.subscription import DurableSubscription, PlainSubscription, Subscribe, Subscription
from native_backend.terms import EXCLUSIVE, Terms

NOT_GRANTED = "not-granted"  # the native code of what the realm's grants do not allow


class Subscriptions:
    """See the module's docstring."""

    def __init__(
        self, services: Services, metadata: Metadata, shard: Shard, access: Admittance, endings: Endings
    ) -> None:
        self._services, self._metadata, self._shard, self._access = services, metadata, shard, access
        self._endings = endings
        self._open: set[Subscription] = set()
        access.on_changed.append(self._recheck)
        metadata.on_changed.append(self._grown)

    def __len__(self) -> int:
        return len(self._open)

    def close(self) -> None:
        for subscription in list(self._open):
            subscription.close()

    def lose_plain(self, store: int) -> None:
        """The node is gone; what has a state is lost with that."""
        for subscription in list(self._open):
            if subscription.mode in ("plain", "browse") and subscription.node.store == store:
                subscription.lose("not-found", "deleted")

    def _grown(self, node: Node | None) -> None:
        """Whoever consumes from a node that has more partitions now has to attach again."""
        for subscription in list(self._open) if node is not None else ():
            of = subscription.node
            if node is not None and of.topic_id == node.topic_id and of.partitions < node.partitions:
                subscription.revoke("more-partitions", "in-use")

    def begin(self, request: Subscribe, owner: object) -> None:
        """Answered by `Subscribed`."""
        if not self._metadata.alive(request.node):
            self._services.answer(Subscribed(owner, None, "not-found"))
        elif not self._allowed(request):
            self._services.answer(Subscribed(owner, None, "access-denied", NOT_GRANTED))
        elif request.mode == "browse":
            self._begin_browsing(request, owner)
        elif request.mode == "plain" and request.node.partitions > 1:
            self._begin_spread(request, owner, None, EXCLUSIVE)
        elif request.mode == "plain":
            self._begin_plain(request, owner)
        else:
            self._begin_durable(request, owner)

    def _recheck(self) -> None:
        for subscription in list(self._open):
            if not self._allowed(subscription):
                subscription.revoke(NOT_GRANTED)

    def _allowed(self, asked: Subscribe | Subscription) -> bool:
        return self._access.allows(asked.subject, SUBSCRIBING[asked.mode], asked.node)

    def _begin_plain(self, request: Subscribe, owner: object) -> None:
        log, deadline_s = self._services.log, self._services.limits.control_deadline_s

        def place() -> int:
            bounds = store_bounds(log, request.node, deadline_s)
            return place_of(request.start, log, request.node, bounds, deadline_s)

        def done(start: int | LogError) -> None:
            if isinstance(start, LogError):
                self._begun(owner, start)
            elif not self._metadata.alive(request.node):
                self._services.answer(Subscribed(owner, None, "not-found"))
            else:
                closed = self._open.discard
                self._begun(owner, PlainSubscription(self._services, request, owner, closed, start))

        self._services.control.submit(place, done)

    def _begin_browsing(self, request: Subscribe, owner: object) -> None:
        """It needs the queue's state, which only the owner of the shard has."""
        if request.node.kind != "queue":
            self._services.answer(Subscribed(owner, None, "unexpected", f"a {request.node.kind} is not browsed"))
        elif self._services.journal.fenced:
            self._services.answer(Subscribed(owner, None, "in-use"))
        else:
            self._begin_spread(request, owner, QUEUE, EXCLUSIVE)

    def _begin_durable(self, request: Subscribe, owner: object) -> None:
        named = request.mode == "durable"
        name = request.durable if named else QUEUE
        if name is None or named == (request.node.kind == "queue"):
            detail = f"mode {request.mode} does not go with a {request.node.kind}, or names no durable"
            self._services.answer(Subscribed(owner, None, "unexpected", detail))
            return
        terms = request.terms if named else EXCLUSIVE
        if named and self._differs(request, name):
            self._services.answer(Subscribed(owner, None, "kind-differs"))
            return
        if self._services.journal.fenced or (named and not terms.shared and self._in_use(request.node, name)):
            self._services.answer(Subscribed(owner, None, "in-use"))
            return
        if named and not (self._moved(request, name) and self._renewed(request, name)):
            self._services.answer(Subscribed(owner, None, "in-use"))
            return

        def done(dispatch: Dispatch | LogError) -> None:
            if isinstance(dispatch, LogError):
                self._begun(owner, dispatch)
            elif self._services.journal.fenced:
                self._services.answer(Subscribed(owner, None, "in-use"))
            elif not self._metadata.alive(request.node):
                self._services.answer(Subscribed(owner, None, "not-found"))
            elif not named:
                closed = self._open.discard
                self._begun(owner, DurableSubscription(self._services, request, owner, closed, dispatch))
            elif dispatch.durable.terms.shared != terms.shared:  # it was begun by another meanwhile
                self._services.answer(Subscribed(owner, None, "kind-differs"))
            elif (dispatch.links and not terms.shared) or dispatch.durable.terms.selector != terms.selector:
                self._services.answer(Subscribed(owner, None, "in-use"))
            else:
                closed = self._open.discard
                subscription = DurableSubscription(self._services, request, owner, closed, dispatch)
                self._enter(subscription, request, owner, dispatch)

        if request.node.partitions > 1:
            self._begin_spread(request, owner, name, terms)
        else:
            self._shard.open(request.node, name, done, terms, request.start)

    def _begin_spread(self, request: Subscribe, owner: object, name: str | None, terms: Terms) -> None:
        """All stores of a node that has several; `name` where they have a state."""

        def done(stores: list[Opened] | LogError) -> None:
            if isinstance(stores, LogError):
                self._begun(owner, stores)
                return
            dispatch = stores[0].dispatch
            if request.mode != "durable" or dispatch is None:
                self._begun(owner, SpreadSubscription(self._services, request, owner, self._open.discard, stores))
            elif dispatch.durable.terms.shared != terms.shared:  # it was begun by another meanwhile
                self._services.answer(Subscribed(owner, None, "kind-differs"))
            elif dispatch.links and not terms.shared:
                self._services.answer(Subscribed(owner, None, "in-use"))
            else:
                subscription = SpreadSubscription(self._services, request, owner, self._open.discard, stores)
                self._enter(subscription, request, owner, dispatch)

        open_stores(self._services, self._shard, request, name, terms, done)

    def _differs(self, request: Subscribe, name: str) -> bool:
        known = self._shard.terms(request.node, name)
        return known is not None and known.shared != request.terms.shared

    def _moved(self, request: Subscribe, name: str) -> bool:
        """Durables of that name elsewhere end, where that is wanted. False: one of them has links."""
        if not request.only_here:
            return True
        others = [each for each in self._endings.named(name) if each.node != request.node.name]
        if any(self._shard.occupied(other.store, name) for other in others):
            return False
        for other in others:
            self._endings.renew(other)
        return True

    def _renewed(self, request: Subscribe, name: str) -> bool:
        """A durable of that name for other events ends, and whoever asks waits for that and begins anew. False: it has
        links, which did not ask for another."""
        known = self._shard.terms(request.node, name)
        if known is None or known.selector == request.terms.selector:
            return True
        durable = self._metadata.durable(request.node, name)
        if durable is None or self._shard.occupied(durable.store, name):
            return False
        self._endings.renew(durable)
        return True

    def _in_use(self, node: Node, durable: str) -> bool:
        dispatch = self._shard.opened(node, durable)
        return self._shard.opening(node, durable) or (dispatch is not None and bool(dispatch.links))

    def _enter(self, subscription: Subscription, request: Subscribe, owner: object, dispatch: Dispatch) -> None:
        """A link of a durable, on the terms that it brings."""
        subscription.on_released = partial(self._endings.released, dispatch.durable)
        self._endings.held(dispatch.durable)

        def agreed(error: LogError | None) -> None:
            if error is not None:
                subscription.close()
                subscription.release()
            self._begun(owner, subscription if error is None else error)

        if dispatch.durable.terms == request.terms:
            agreed(None)
        else:
            self._shard.agree(dispatch, request.terms, agreed)

    def _begun(self, owner: object, result: Subscription | LogError) -> None:
        if isinstance(result, LogError):
            failure = result.failure
            native = failure.code or failure.cause
            self._services.answer(Subscribed(owner, None, subscribe_answer(failure), native))
            return
        if not self._allowed(result):  # since it was asked
            result.close()
            result.release()
            self._services.answer(Subscribed(owner, None, "access-denied", NOT_GRANTED))
            return
        self._open.add(result)
        self._services.answer(Subscribed(owner, result, "ready"))
