"""Columns of octet strings, whatever holds them: a list of bytes, or `Octets`, which knows its sizes.

Sizes in octets.
"""

from __future__ import annotations

from collections.abc import Sequence

from native_backend.log.octets import Octets

Strings = Sequence[bytes]


def size_of(strings: Strings) -> int:
    """All of them together."""
    return strings.size if type(strings) is Octets else sum(map(len, strings))


def largest_of(strings: Strings) -> int:
    """The largest one; 0 when there is none."""
    return strings.largest if type(strings) is Octets else max(map(len, strings), default=0)


def letters_of(strings: Sequence[bytes | None]) -> bytes:
    """Has every octet, but for digits, that one of them has: to look for those that nearly none has."""
    return strings.letters if type(strings) is Octets else b"".join(filter(None, strings))
