"""Containers whose messages bear a mark of where they come from, because some subscription of theirs wants none of its
own (no-local). All others pay nothing for that.

A container is marked while it has such a link, and for good once it has such a durable; those that the realm has from
earlier are found with the first publisher. Source: semantics.md 3.7 (no-local); JMS 2.0 section 8.3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from hashlib import blake2b

from gateway.terminus.durable_names import containers_of
from native_backend.nodes.durable import Durable

NO_LOCAL = "no-local; "
"""How the selector of a durable begins that is given nothing of its own container's."""


def origin_of(container: str) -> int:
    """The digest that stands for it in the mark."""
    return int.from_bytes(blake2b(container.encode(), digest_size=8).digest(), "big")


class NoLocalContainers:
    """Of one gateway."""

    def __init__(self, durables: Callable[[], Collection[Durable]]) -> None:
        self._durables: Callable[[], Collection[Durable]] | None = durables
        self._held: Counter[str] = Counter()  # links with no-local; a durable counts once more than its links

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, container: str) -> bool:
        if self._durables is not None:
            durables, self._durables = self._durables(), None
            for durable in durables:
                if durable.terms.selector.startswith(NO_LOCAL):
                    for container in containers_of(durable):
                        self.add(container)
        return container in self._held

    def add(self, container: str) -> None:
        self._held[container] += 1

    def release(self, container: str) -> None:
        self._held[container] -= 1
        if self._held[container] <= 0:
            del self._held[container]
