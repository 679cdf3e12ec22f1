"""`realmgate audit`: the commands that changed a realm: when, who, what, why, and what came of it, oldest first. Works
beside a serving gateway or without one.

What the records of an earlier release do not say is empty. A command without an answer was given to an owner that was
killed, or its answer is on its way; the journal says what became of it. Exit codes: 0 done. Errors: `LogError`, told by
`gateway.cli.main`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final, TextIO

from gateway.cli.answering_log import open_answering
from gateway.cli.output import printable, time_of, write_json, write_table
from gateway.config.settings import Settings
from native_backend.log.port import Log, LogError
from native_backend.log.time_search import first_at
from native_backend.nodes.commands import (
    Command,
    Reply,
    answers_topic,
    commands_topic,
    decode_command,
    decode_note,
    decode_reply,
    given_at,
)
from native_backend.nodes.durable import QUEUE
from native_backend.nodes.metadata import read_tail

_DEADLINE_S: Final = 10.0
_ON_REALM: Final = ("grant", "revoke")
_TITLES: Final = ("TIME", "WHO", "WHAT", "ANSWER", "COUNT", "WHY")


def run(arguments: argparse.Namespace, settings: Settings, out: TextIO) -> int:
    """One command; its exit code."""
    with closing(open_answering(settings, arguments.timeout)) as log:
        given = _given(log, settings.realm.prefix, arguments.since)
    if arguments.json:
        write_json(given, out)
    else:
        write_table(_TITLES, [_row(record) for record in given], out)
    return 0


def _given(log: Log, prefix: str, since: int) -> list[dict[str, Any]]:
    """The commands since then, and their answers."""
    replies: dict[str, Reply] = {}
    for value in _values(log, answers_topic(prefix), since):
        reply = decode_reply(value)
        if reply is not None:
            replies[reply.id] = reply
    documents = []
    for value in _values(log, commands_topic(prefix), since):
        command = decode_command(value)
        note = decode_note(value) if command is None else None
        if command is not None and command.what != "count":  # it changes nothing
            documents.append(_document(given_at(value), command, replies.get(command.id)))
        elif note is not None:
            command = Command(note.id, "count", note.node, 0, "", 0, who=note.who, why=note.why)
            columns = {"what": note.what, "node": note.node or None, "change": note.change}
            documents.append(_document(given_at(value), command, replies.get(note.id)) | columns)
    return documents


def _values(log: Log, topic: str, since: int) -> Iterator[bytes]:
    """Blocks; raises LogError. None of a realm that was never opened."""
    try:
        start = first_at(log, topic, 0, log.control.bounds(topic, 0), since // 1000, _DEADLINE_S)
    except LogError as error:
        if error.failure.cause != "not-found":
            raise
        return
    for records in read_tail(log, topic, start):
        yield from (value for value in records.values if value is not None)


def _document(at_us: int, command: Command, reply: Reply | None) -> dict[str, Any]:
    return {
        "at": time_of(at_us),
        "who": command.who or None,
        "why": command.why or None,
        "id": command.id,
        "what": command.what,
        "change": None,
        "node": command.node,
        "durable": command.durable or None,
        "where": command.where or None,
        "eid": command.eid,
        "max": command.count,
        "to": command.to or None,
        "answer": reply.answer if reply is not None else None,
        "count": reply.count if reply is not None else None,
        "detail": reply.detail if reply is not None else None,
    }


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    count = str(record["count"]) if record["count"] is not None else "-"
    return record["at"], _shown(record["who"]), _words(record), _shown(record["answer"]), count, _shown(record["why"])


def _words(record: dict[str, Any]) -> str:
    if record["change"] is not None:
        node = (
            f" {printable(record['node'])}"
            if record["node"] is not None
            else " the realm"
            if record["what"] in _ON_REALM
            else ""
        )
        return f"{record['what']}{node}: {printable(record['change'])}"
    words = [record["what"], printable(record["node"])]
    if record["durable"] not in (None, QUEUE):
        words.append(f"durable {printable(record['durable'])}")
    if record["what"] == "seek":
        words.append(f"to EID {record['eid']}")
    elif record["eid"]:
        words.append(f"below EID {record['eid']}")
    if record["max"]:
        words.append(f"at most {record['max']}")
    if record["what"] == "move":
        words.append(f"to {printable(record['to'])}")
    elif record["to"] == "topic":
        words.append("with its topic")
    if record["where"]:
        words.append(f"where {printable(record['where'])}")
    return " ".join(words)


def _shown(text: str | None) -> str:
    return printable(text) if text else "-"
