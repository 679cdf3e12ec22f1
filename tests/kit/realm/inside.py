"""What tests look at inside an open realm: the one place that names its private parts.

A test that needs one of them asks what no answer of the realm says: that a thread of work has ended, what is held in
memory, that a counter did not rise.
"""

from __future__ import annotations

from native_backend.dispatch.context import RealmContext
from native_backend.publish.publisher import Publisher
from native_backend.realm import Realm
from native_backend.shard.metadata_looks import MetadataLooks
from native_backend.shard.shard import Shard


def context_of(realm: Realm) -> RealmContext:
    """With its journal, its lease, its windows, its worker, its alarms."""
    return realm._context


def shard_of(realm: Realm) -> Shard:
    return realm._shard


def publisher_of(realm: Realm) -> Publisher:
    return realm._publisher


def remembered(realm: Realm) -> tuple[int, ...]:
    """Of how many stores and groups something is kept by their names, which nodes take along."""
    ends, groups = realm._context.known, realm._shard._group_offsets
    kept = len(ends._ends), len(ends._cuts), len(groups._seen), len(groups._shown)
    return *kept, len(groups._topics), len(groups._groups)


def looks_of(realm: Realm) -> MetadataLooks:
    return realm._looks
