"""`--as USER`: a command that is given for a user of the users file. The grants of the realm decide whether that user
may do it, Kafka's own lists too where the configuration says so; a change that is refused is recorded.

Who runs the command may do everything anyway: the option makes the command do less, and names the user in the record.
Blocks; raises LogError, and NodeError where the user may not.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from contextlib import closing
from typing import Final

from gateway.cli.answering_log import open_answering
from gateway.cli.audit.noted import begin
from gateway.cli.audit.who import CHARACTERS_MAX, who_am_i
from gateway.cli.output import printable
from gateway.cli.typed_numbers import ANSWER_S
from gateway.config.settings import Settings
from native_backend.access.authorizer import log_allows
from native_backend.log.port import Log
from native_backend.nodes.commands import Note
from native_backend.nodes.grants import ANONYMOUS, Subject, deciding_grant
from native_backend.nodes.metadata_writer import realm_metadata
from native_backend.nodes.node import NodeError

Need = tuple[str, str]
"""An operation, and the node that it is done to; empty: the realm."""
_LISTS_S: Final = 5.0


def refuse_what_may_not_be(settings: Settings, arguments: Namespace, needs: Iterable[Need], change: str) -> None:
    """Nothing without `--as`. `change`: the command in words, for the record; empty: nothing would be changed."""
    user = arguments.behalf
    if not user:
        return
    subject = _subject(settings, user)
    with closing(open_answering(settings, getattr(arguments, "timeout", ANSWER_S))) as log:
        refused = _refused(log, settings, subject, needs)
        if refused is None:
            return
        operation, node = refused
        place = f"node {printable(node)}" if node else "the realm"
        words = f"{printable(user)} may not {operation} {place}"
        if change:
            why = getattr(arguments, "why", "") or getattr(arguments, "reason", "")
            note = Note("", "refused", node, change[:CHARACTERS_MAX], who_am_i(user), why)
            begin(log, settings.realm.prefix, note)("access-denied", words)
        where = f"--node {printable(node)}" if node else "--realm"
        raise NodeError(f"{words}; realmgate acl grant user:{printable(user)} {operation} {where} allows it")


def _subject(settings: Settings, name: str) -> Subject:
    users = settings.security.users
    if name in users:
        return users.subject(name)
    if name == ANONYMOUS.user:
        return ANONYMOUS
    raise NodeError(f"there is no user {printable(name)} in the users file")


def _refused(log: Log, settings: Settings, subject: Subject, needs: Iterable[Need]) -> Need | None:
    """The first of the needs that nothing allows."""
    metadata = realm_metadata(log, settings.realm.prefix)
    lists = log.control.access_lists(_LISTS_S) if settings.security.kafka_acls else None
    for operation, name in needs:
        node = metadata.nodes.get(name)
        acl = (node.properties.acl if node is not None else ()) + metadata.acl
        if acl and deciding_grant(acl, subject, operation) is None:
            return operation, name
        if lists is not None and node is not None and not log_allows(lists, subject, {operation}, node.topic):
            return operation, name
    return None
