"""The subscriptions of one process: how they begin, and how they end when their subject may have them no more.

A durable has one link, or, where it is shared, as many as come; of one that is known as the one kind no link of the
other kind becomes part. Where it belongs to its user, no link of another user does, unless that is granted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from native_backend.access.authorizer import Authorizer
from native_backend.access.durable_owner import NOT_OWNED, may_use, owner_after
from native_backend.dispatch.context import RealmContext, subscribe_answer
from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.log.port import LogError
from native_backend.nodes.durable import QUEUE, Durable, DurableName
from native_backend.nodes.durable_terms import DurableTerms
from native_backend.nodes.grants import SUBSCRIBING
from native_backend.nodes.node import Node
from native_backend.nodes.words import SubscribeAnswer
from native_backend.operations.durable_lifetime import DurableLifetimes
from native_backend.shard.shard import Shard
from native_backend.subscriptions.partitioned import OpenedStore, open_stores, subscribed
from native_backend.subscriptions.subscription import Subscribe, Subscribed, Subscription

NOT_GRANTED = "not-granted"  # the native code of what the realm's grants do not allow
_GROWN = "more-partitions"  # of who has to attach again, to all of them


class SubscriptionRegistry:
    """See the module's docstring."""

    def __init__(self, context: RealmContext, shard: Shard, authorizer: Authorizer, endings: DurableLifetimes) -> None:
        self._context, self._metadata, self._shard, self._authorizer = context, context.metadata, shard, authorizer
        self._lifetimes = endings
        self._open: set[Subscription] = set()
        authorizer.on_changed.append(self._recheck)
        context.metadata.on_changed.append(self._grown)

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
        """Consumers of a node that has more partitions now must attach again."""
        for subscription in list(self._open) if node is not None else ():
            held = subscription.node
            if node is not None and held.topic_id == node.topic_id and held.partitions < node.partitions:
                subscription.revoke(_GROWN, "in-use")

    def begin(self, request: Subscribe, owner: object) -> None:
        """Answered by `Subscribed`."""
        request = self._as_known(request)
        refused, native = self._refused(request)
        if refused is not None:
            self._context.answer(Subscribed(owner, None, refused, native))
            return

        def done(stores: list[OpenedStore] | LogError) -> None:
            if isinstance(stores, LogError):
                self._begun(owner, stores)
            else:
                self._opened(request, owner, stores)

        open_stores(self._context, self._shard, request, _state_of(request), done)

    def _refused(self, request: Subscribe) -> tuple[SubscribeAnswer | None, str]:
        """Why it does not begin, as far as that is known before its stores are opened, and the native code."""
        kind, mode = request.node.kind, request.mode
        if not self._metadata.alive(request.node):
            return "not-found", ""
        denied = self._denied(request)
        if denied:
            return "access-denied", denied
        if mode == "browse" and kind != "queue":
            return "unexpected", "not-browsed"
        if (mode == "queue" and kind != "queue") or (mode == "durable" and (kind == "queue" or not request.durable)):
            return "unexpected", "mode-not-fitting"
        if mode != "plain" and self._context.journal.fenced:
            return "in-use", ""
        return (self._hindered(request, request.durable) if mode == "durable" and request.durable else None), ""

    def _as_known(self, request: Subscribe) -> Subscribe:
        """By the earlier name of the durable, where there is one that is this subscriber's, or it is to get that."""
        names, node = request.names, request.node
        if names is None or not names.earlier or self._metadata.durable(node, names.name) is not None:
            return request
        known = self._metadata.durable(node, names.earlier)
        if not (names.stays if known is None else names.means(known)):
            return request
        return replace(request, durable=names.earlier, terms=replace(request.terms, subscriber=names.subscriber))

    def _recheck(self) -> None:
        for subscription in list(self._open):
            denied = self._denied(subscription)
            if denied:
                subscription.revoke(denied)

    def _denied(self, requested: Subscribe | Subscription) -> str:
        """The native code of why its subject may not have it; empty: it may."""
        if not self._authorizer.allows(requested.subject, SUBSCRIBING[requested.mode], requested.node):
            return NOT_GRANTED
        if requested.mode != "durable" or not requested.durable:
            return ""
        whole, name = requested.node.part(0), requested.durable
        known = self._metadata.durable(whole, name)
        ended = self._shard.terms(whole, name) is None  # the next link begins another one
        return "" if known is None or ended or self._its_own(requested, known) else NOT_OWNED

    def _its_own(self, requested: Subscribe | Subscription, durable: Durable) -> bool:
        """The durable is its subject's, or its subject may use it all the same."""
        return not requested.owned or may_use(self._metadata, requested.subject, durable)

    def _opened(self, request: Subscribe, owner: object, stores: list[OpenedStore]) -> None:
        """Every store of the node is there: one more link, unless another was quicker."""
        first = stores[0].dispatch if request.mode == "durable" else None
        hindrance = hindrance_of(first.durable.terms, request.terms, bool(first.links)) if first is not None else None
        denied = self._denied(request)
        if denied:  # since it was asked; or another user has begun the durable meanwhile
            self._context.answer(Subscribed(owner, None, "access-denied", denied))
        elif hindrance is not None:
            self._context.answer(Subscribed(owner, None, hindrance))
        elif self._metadata.stores[request.node.store].partitions > request.node.partitions:
            self._context.answer(Subscribed(owner, None, "in-use", _GROWN))
        else:
            subscription = subscribed(self._context, request, owner, self._open.discard, stores)
            if first is not None:
                self._enter(subscription, request, owner, first)
            else:
                self._begun(owner, subscription)

    def _hindered(self, request: Subscribe, name: str) -> SubscribeAnswer | None:
        """Why that durable gets no such link. What stands in the way and has no links itself ends: the durable of that
        name for other events, and those on other nodes where only one is wanted."""
        known, store = self._shard.terms(request.node, name), request.node.part(0).store
        occupied = self._shard.is_in_use(store, name)
        hindrance = hindrance_of(known, request.terms, occupied) if known is not None else None
        if hindrance == "kind-differs" or (hindrance is not None and occupied) or not self._moved(request, name):
            return hindrance or "in-use"
        if hindrance is not None:  # it is for other events, and has no links
            durable = self._metadata.durable(request.node, name)
            if durable is None:
                return hindrance
            self._lifetimes.renew(durable)
        return None

    def _moved(self, request: Subscribe, name: str) -> bool:
        """Durables of that name elsewhere end, where that is wanted. False: one of them has links. Those of other users
        are not meant."""
        if not request.only_here:
            return True
        named = self._lifetimes.named(request.names or DurableName(name))
        others = [durable for durable in named if durable.node != request.node.name and self._its_own(request, durable)]
        if any(self._shard.is_in_use(other.store, other.name) for other in others):
            return False
        for other in others:
            self._lifetimes.renew(other)
        return True

    def _enter(self, subscription: Subscription, request: Subscribe, owner: object, dispatch: Dispatcher) -> None:
        """A link of a durable, on the terms that it brings; one without an owner may get one."""
        subscription.on_released = partial(self._lifetimes.released, dispatch.durable)
        self._lifetimes.held(dispatch.durable)

        def agreed(error: LogError | None) -> None:
            if error is not None:
                subscription.close()
                subscription.release()
            self._begun(owner, subscription if error is None else error)

        durable, terms = dispatch.durable, request.terms
        new_owner = owner_after(durable, request.subject, terms) if request.owned else durable.owner
        if (durable.terms, durable.owner) == (terms, new_owner):
            agreed(None)
        else:
            self._shard.change(dispatch, replace(durable, terms=terms, owner=new_owner), agreed)

    def _begun(self, owner: object, result: Subscription | LogError) -> None:
        if isinstance(result, LogError):
            failure = result.failure
            native = failure.code or failure.cause
            self._context.answer(Subscribed(owner, None, subscribe_answer(failure), native))
            return
        denied = self._denied(result)
        if denied:  # since it was asked
            result.close()
            result.release()
            self._context.answer(Subscribed(owner, None, "access-denied", denied))
            return
        self._open.add(result)
        self._context.answer(Subscribed(owner, result, "ready"))


def hindrance_of(held: DurableTerms, requested: DurableTerms, in_use: bool) -> SubscribeAnswer | None:
    """Why a durable on those terms has no place for a link that asks for these."""
    if held.shared != requested.shared:
        return "kind-differs"
    if held.selector != requested.selector or (in_use and not requested.shared):
        return "in-use"
    if held.subscriber not in (None, requested.subscriber):  # another subscriber of the earlier name was faster
        return "in-use"
    return None


def _state_of(request: Subscribe) -> str | None:
    """The durable whose state it needs: a browser that of the queue, a plain subscription none."""
    if request.mode == "plain":
        return None
    return request.durable if request.mode == "durable" else QUEUE
