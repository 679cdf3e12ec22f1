"""Opening a realm as a gateway does."""

from __future__ import annotations

from native_backend.log.port import LogError
from native_backend.realm import Realm
from tests.kit.patience import until

_WAITED_FOR = ("unavailable", "indeterminate")


def open_realm(realm: Realm) -> None:
    """Again where the log was not available, or did not say in time what became of a record: a cluster that has just
    started answers late."""
    until(lambda: _opens(realm), "a realm that is open")


def _opens(realm: Realm) -> bool:
    try:
        realm.open()
    except LogError as error:
        if error.failure.cause not in _WAITED_FOR:
            raise
        return False
    return True
