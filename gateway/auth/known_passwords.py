"""Passwords that were right a while ago, so that a client that connects again costs no hashing.

Of each user the last one, as a digest under a key that is drawn for these users and exists in memory only. They go with
the `Users` that they were right for: a file with another content begins without any. Thread-safe.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from hashlib import sha256

KNOWN_MAX = 10_000  # users; the one that was right longest ago goes


class KnownPasswords:
    """Of one `Users`."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)
        self._digests: OrderedDict[str, bytes] = OrderedDict()

    def __len__(self) -> int:
        return len(self._digests)

    def __contains__(self, login: tuple[str, str]) -> bool:
        """`login`: a user and a password."""
        known = self._digests.get(login[0])
        return known is not None and hmac.compare_digest(known, self._digest(*login))

    def add(self, user: str, password: str) -> None:
        """It was right."""
        self._digests[user] = self._digest(user, password)
        self._digests.move_to_end(user)
        while len(self._digests) > KNOWN_MAX:
            self._digests.popitem(last=False)

    def _digest(self, user: str, password: str) -> bytes:
        return hmac.digest(self._secret, f"{user}\0{password}".encode(), sha256)
