"""Files with passwords or messages that every user of the machine may read: each is allowed, and each gives a warning.

The warnings are in the log at the start, and in `/health` and `doctor` as long as they hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gateway.config.exposure import exposures
from gateway.config.settings import EmbeddedRealm, Settings
from native_backend.log.open import EMBEDDED_FILE

_OTHERS_READ: Final = 0o004


def open_warnings(settings: Settings, has_grants: bool) -> Iterator[str]:
    """Of what is open to other machines, and to other users of this one. `has_grants`: as in `exposures`."""
    for words in exposures(settings, has_grants):
        yield f"open to the world: {words}"
    yield from open_files(settings)


def open_files(settings: Settings) -> Iterator[str]:
    """One line for each; the remedy is behind the last colon."""
    for file in (settings.security.users_file, realm_file(settings)):
        if words := open_to_all(file):
            yield words


def realm_file(settings: Settings) -> Path | None:
    """Where the embedded realm keeps messages."""
    realm = settings.realm
    return realm.path / EMBEDDED_FILE if isinstance(realm, EmbeddedRealm) else None


def open_to_all(file: Path | None) -> str:
    """What is wrong with the file's mode, and what to do; empty where nothing is, or there is no file."""
    try:
        if file is None or not file.stat().st_mode & _OTHERS_READ:
            return ""
    except OSError:
        return ""
    return f"{file}: every user of this machine may read it: chmod o-r {file}"
