"""The log that a configuration names, opened, with its native errors in force. Raises `LogError` (or `sqlite3.Error`
from the embedded one), and `MappingProblems` with what is wrong with errors.yaml.

May import: `gateway.settings`, `mappings`, `native_backend.log`, `native_backend.logs`, `native_backend.retrying`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.settings import EmbeddedRealm, Settings
from mappings import MappingProblems
from mappings.errors import IN_FORCE, usable_errors_of
from native_backend.log import Log

if TYPE_CHECKING:
    from native_backend.retrying import Retries  # tenacity takes its time; commands that open no log need none


def open_log(settings: Settings, retries: Retries | None = None) -> Log:
    """Its driver is imported only now: the embedded realm needs no Kafka client. `retries`: where what is asked again
    is counted."""
    from native_backend import logs

    errors, problems = usable_errors_of(settings.mappings.directory)
    if problems:
        raise MappingProblems(problems)
    IN_FORCE.use(errors)
    realm = settings.realm
    if isinstance(realm, EmbeddedRealm):
        return logs.open_embedded(realm.path)
    ours: dict[str, str | int] = {
        "delivery.timeout.ms": settings.limits.publish_deadline_ms,
        "group.id": f"{realm.prefix}.reader",
    }
    return logs.open_kafka(realm.bootstrap, {**ours, **realm.client}, retries)


def where(settings: Settings) -> str:
    """Which realm that is, for an operator."""
    realm = settings.realm
    if isinstance(realm, EmbeddedRealm):
        return f"the embedded realm in {realm.path}"
    return f"the realm on Kafka at {realm.bootstrap}"
