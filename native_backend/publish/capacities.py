"""The nodes of a realm that have a capacity, as their properties are now."""

from __future__ import annotations

from collections.abc import Callable

from native_backend.dispatch.context import RealmContext
from native_backend.nodes.node import Node
from native_backend.publish.capacity import CountedStore, StateOf


class Capacities:
    """See the module's docstring. `evicted`: hears of what a full store has given up."""

    def __init__(self, context: RealmContext, state_of: StateOf, evicted: Callable[[int, int], None]) -> None:
        self._context, self._state_of, self._evicted = context, state_of, evicted
        self._counted_stores: dict[int, CountedStore] = {}

    @property
    def pending(self) -> bool:
        return any(counted_store.pending for counted_store in self._counted_stores.values())

    def of(self, node: Node) -> CountedStore | None:
        """The node's, as its properties are now; None when it has none."""
        current = self._context.metadata.stores.get(node.store, node)
        properties = current.properties
        counted_store = self._counted_stores.get(node.store)
        if not properties.capacity_events and not properties.capacity_bytes:
            if counted_store is None or counted_store.pending:
                if counted_store is not None and counted_store.node != current:
                    self._gather(current)
                return counted_store
            self.forget(node.store)
            return None
        if counted_store is None or len(counted_store.group) != current.partitions or counted_store.node != current:
            self._gather(current)
        return self._counted_stores[node.store]

    def _gather(self, node: Node) -> None:
        """The stores of a node, as it is now, share its capacity."""
        group = []
        for part in node.parts:
            counted_store = self._counted_stores.get(part.store)
            if counted_store is None:
                counted_store = CountedStore(self._context, part, self._state_of, self._evicted)
                self._counted_stores[part.store] = self._context.counted[part.store] = counted_store
            counted_store.node = part
            group.append(counted_store)
        for counted_store in group:
            counted_store.group = group

    def full(self, node: Node) -> bool:
        """Every store of it, as far as that is known, by the properties that it has now."""
        if not self._counted_stores:
            return False
        counted = [self.of(part) if part.store in self._counted_stores else None for part in node.parts]
        return all(counted_store is not None and counted_store.is_full for counted_store in counted)

    def forget(self, store: int) -> None:
        counted_store = self._counted_stores.pop(store, None)
        if counted_store is not None:
            counted_store.stop()
        self._context.counted.pop(store, None)
