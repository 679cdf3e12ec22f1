"""Kafka's access control lists, read by kafka-python."""

from __future__ import annotations

from kafka import errors as kafka_errors
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePatternFilter,
    ResourceType,
)

from native_backend.log.access_lists import AccessEntry, AccessLists

_TOPICS = ACLFilter(
    principal=None,
    host=None,
    operation=ACLOperation.ANY,
    permission_type=ACLPermissionType.ANY,
    resource_pattern=ResourcePatternFilter(ResourceType.TOPIC, None, ACLResourcePatternType.ANY),
)


def topic_access_lists(admin: KafkaAdminClient) -> AccessLists:
    """All access entries for topics. Raises kafka-python's errors; SecurityDisabledError: there are no lists."""
    acls, error = admin.describe_acls(_TOPICS)
    if error is not kafka_errors.NoError:
        raise error("access lists")
    return AccessLists(
        frozenset(
            AccessEntry(
                principal=acl.principal,
                name=acl.resource_pattern.resource_name,
                prefixed=acl.resource_pattern.pattern_type == ACLResourcePatternType.PREFIXED,
                operation=acl.operation.name,
                allows=acl.permission_type == ACLPermissionType.ALLOW,
                host=acl.host,
            )
            for acl in acls
        )
    )
