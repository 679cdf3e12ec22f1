"""A column of messages, as a transformer sees it: a sequence that can say much of itself without an object a message.

`native_backend.log.octets.Octets` is one. Sizes in octets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class Column(Protocol):
    """See the module's docstring."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: int, /) -> bytes: ...

    def __iter__(self) -> Iterator[bytes]: ...

    def front(self, i: int, most: int, /) -> tuple[int, bytes]:
        """The size of message `i`, and its first octets, `most` of them: large ones are not copied."""
        ...

    def alike(self, start: int, size: int, head: bytes, /) -> int:
        """The first message from `start` on that has another size or begins otherwise."""
        ...

    def number(self, prefix: bytes, first: int, count: int, suffix: bytes, /) -> None:
        """`count` more of them: prefix, a rising number, suffix."""
        ...

    def empty(self) -> Column:
        """Another one, with nothing in it."""
        ...
