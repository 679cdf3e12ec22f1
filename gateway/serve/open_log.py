"""The log that a configuration names, opened, with its native errors active. Raises `LogError` (or `sqlite3.Error`
from the embedded one), and `MappingProblems` with what is wrong with errors.yaml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway.config.settings import EmbeddedRealm, Settings
from mappings import MappingProblems
from mappings.compiler.errors import IN_FORCE, usable_errors_of
from native_backend.log.port import Log

if TYPE_CHECKING:
    from native_backend.log.retry import Retries  # tenacity takes its time; commands that open no log need none


def open_log(settings: Settings, retries: Retries | None = None) -> Log:
    """Its driver is imported only now: the embedded realm needs no Kafka client. `retries`: where what is asked again
    is counted."""
    from native_backend.log import open as logs

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
