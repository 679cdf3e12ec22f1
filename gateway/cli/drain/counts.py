"""How many messages a queue holds, by the word of its broker: compared at both ends of a drain.

AMQP has no such question. Artemis answers it at its management address, to users that may manage; a realm is asked
through its configuration. None: not known, and then it is not compared. Seconds.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

from proton import Message

from gateway.cli.answering_log import open_answering
from gateway.cli.client.client_problem import ClientProblem
from gateway.cli.client.connection import Peer, made, send, sender
from gateway.cli.message_numbers import numbers, stored_in
from gateway.config.settings import Settings
from mappings import MappingProblems
from native_backend.log.port import LogError
from native_backend.nodes.metadata_writer import realm_metadata

_ARTEMIS: Final = "artemis"
_MANAGEMENT: Final = "activemq.management"
_ANSWER_S: Final = 5.0


def counted_by_broker(peer: Peer, queue: str) -> int | None:
    """By Artemis."""
    if _ARTEMIS not in peer.product:
        return None
    try:
        return _asked(peer, queue)
    except (ClientProblem, ValueError, TypeError, KeyError, IndexError):
        return None  # a user that may consume need not be one that may manage


def _asked(peer: Peer, queue: str) -> int | None:
    answers: Any = peer.session.receiver(f"counts-{uuid.uuid4()}")
    answers.source.dynamic = True
    peer.attach(answers, "a temporary queue")
    answers.flow(1)
    what = {"_AMQ_ResourceName": f"queue.{queue.rpartition('::')[2]}", "_AMQ_Attribute": "messageCount"}
    question: Any = made("", str(uuid.uuid4()), None, what, False)
    question.body = "[]"
    question.reply_to = answers.remote_source.address
    to = sender(peer, _MANAGEMENT)
    send(to, question, _ANSWER_S)
    count = None
    if peer.wait(lambda: answers.queued > 0, _ANSWER_S):
        answer = Message()
        answer.recv(answers)
        count = int(json.loads(str(answer.body))[0])
    to.link.close()
    answers.close()
    return count


def counted_by_realm(settings: Settings, names: Sequence[str]) -> dict[str, int]:
    """Of these nodes, those that are counted."""
    try:
        with closing(open_answering(settings)) as log:
            metadata = realm_metadata(log, settings.realm.prefix)
            nodes = [metadata.nodes[name] for name in names if name in metadata.nodes]
            counted = numbers(log, settings.realm.prefix, metadata, nodes) if nodes else {}
            counts = {node.name: stored_in(counted, node) for node in nodes}
    except (LogError, MappingProblems, OSError, sqlite3.Error):  # this user may not read it, or it is not there
        return {}
    return {name: number for name, number in counts.items() if number is not None}
