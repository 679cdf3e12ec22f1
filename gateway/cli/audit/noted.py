"""Recording who changed metadata, and why, beside the commands that the realm's owner carries out: `realmgate audit`.

with noted(log, prefix, "grant", "orders", "user:ann publish", why):
    ...                          # the change; recorded before it, answered after it

Blocks; raises LogError, and what the change raises.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from gateway.cli.audit.who import CHARACTERS_MAX, who_am_i
from native_backend.clock import SystemClock
from native_backend.log.port import Log, TopicSpec
from native_backend.nodes.commands import (
    Note,
    NotedWhat,
    Reply,
    answers_topic,
    commands_topic,
    encode_note,
    encode_reply,
)
from native_backend.nodes.words import CommandAnswer


@contextmanager
def noted(log: Log, prefix: str, what: NotedWhat, node: str, change: str, why: str) -> Iterator[None]:
    """`node`: empty for the realm. A change that fails has the answer `unexpected`, and says how."""
    answer = begin(log, prefix, Note("", what, node, change, who_am_i(), why))
    try:
        yield
    except Exception as error:
        answer("unexpected", str(error)[:CHARACTERS_MAX])
        raise
    answer("done", "")


def begin(log: Log, prefix: str, note: Note) -> Callable[[CommandAnswer, str], None]:
    """Records the note, under an id of its own; what is returned records how it was answered, with the detail."""
    clock, id_ = SystemClock(), uuid.uuid4().hex
    note = replace(note, id=id_, why=note.why[:CHARACTERS_MAX])
    log.control.create_topics([TopicSpec(topic(prefix), compacted=False) for topic in (commands_topic, answers_topic)])
    log.control.put(commands_topic(prefix), id_.encode(), encode_note(note, clock.epoch_us()))

    def answer(words: CommandAnswer, detail: str) -> None:
        value = encode_reply(Reply(id_, words, 0, detail), "", clock.epoch_us())
        log.control.put(answers_topic(prefix), id_.encode(), value)

    return answer
