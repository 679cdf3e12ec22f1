"""Opening a realm as a gateway does."""

from __future__ import annotations

from native_backend.log.port import LogError
from native_backend.realm import Realm
from tests.kit.patience import until


def open_realm(realm: Realm) -> None:
    """Again where the log was not available: a cluster that has just started answers late."""
    until(lambda: _opens(realm), "a realm that is open")


def _opens(realm: Realm) -> bool:
    try:
        realm.open()
    except LogError as error:
        if error.failure.cause != "unavailable":
            raise
        return False
    return True
