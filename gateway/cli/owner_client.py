"""Having a command carried out: by the gateway that owns the realm, or, when none lives, by this process.

The owner finds the command in `<prefix>.commands` and answers in `<prefix>.answers`. Without a live owner this process
opens the realm itself and does the same with the same code. A command is begun within `PATIENCE_S` or not at all; when
no answer comes, the journal says what has become of it so far. Blocks; raises LogError.
"""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import replace

from gateway.cli.audit.who import CHARACTERS_MAX, who_am_i
from gateway.config.settings import Settings
from gateway.links.event_to_message import EventToMessage
from gateway.serve.open_log import open_log
from native_backend.clock import Clock, SystemClock
from native_backend.journal.journal import journal_topic, tail
from native_backend.log.port import Log, LogError
from native_backend.log.worker import Workers
from native_backend.nodes.answers import Commanded
from native_backend.nodes.commands import (
    Command,
    Reply,
    What,
    answers_topic,
    cause_of,
    commands_topic,
    decode_reply,
    encode_command,
)
from native_backend.nodes.durable import Durable
from native_backend.nodes.metadata import read_tail
from native_backend.nodes.node import Node
from native_backend.realm import Realm

PATIENCE_S = 30.0
_GRACE_S = 5.0  # for what was begun in time
_PAUSE_S = 0.02
_CLOSE_S = 10.0


def carry_out(
    settings: Settings,
    what: What,
    durable: Durable,
    *,
    eid: int = 0,
    count: int = 0,
    to: str = "",
    where: str = "",
    why: str = "",
    behalf: str = "",
) -> Reply:
    """Blocks until it is done, refused, or certain not to be. `behalf`: the user for whom it is given."""
    place = durable.node, durable.store, durable.name
    return _carried_out(settings, Command("", what, *place, 0, eid, count, to, where, who_am_i(behalf), why))


def delete_node(settings: Settings, node: Node, with_topic: bool, why: str = "") -> Reply:
    """The same, for the whole node."""
    to = "topic" if with_topic else ""
    return _carried_out(
        settings, Command("", "delete-node", node.name, node.part(0).store, "", 0, to=to, who=who_am_i(), why=why)
    )


def _carried_out(settings: Settings, wish: Command) -> Reply:
    clock = SystemClock()
    until_us = clock.epoch_us() + int(PATIENCE_S * 1e6)
    command = replace(wish, id=uuid.uuid4().hex, until_us=until_us, why=wish.why[:CHARACTERS_MAX])
    run = f"{clock.epoch_us() // 1000:x}-{os.urandom(2).hex()}"
    log, prefix, limits = open_log(settings), settings.realm.prefix, settings.limits.realm
    workers = Workers.threads()
    back = EventToMessage()
    realm = Realm(log, prefix, run, clock, workers, limits, back.annotate, back.message, selecting=back.selecting)
    try:
        realm.open()
    except LogError as error:
        try:
            if error.failure.cause != "fenced":
                raise
            return ask(log, prefix, command, clock)
        finally:
            for worker in workers.each():
                worker.close(1.0)
            log.close()
    return _by_ourselves(realm, command, clock)


def ask(log: Log, prefix: str, command: Command, clock: Clock) -> Reply:
    """Have the live owner do it."""
    answers, journal = answers_topic(prefix), journal_topic(prefix)
    position, since = log.control.bounds(answers, 0)[1], log.control.bounds(journal, 0)[1]
    log.control.put(commands_topic(prefix), command.id.encode(), encode_command(command, clock.epoch_us()))
    until_s = clock.monotonic_s() + PATIENCE_S + _GRACE_S
    while clock.monotonic_s() < until_s:
        for records in read_tail(log, answers, position):
            position = records.next
            for value in records.values:
                reply = None if value is None else decode_reply(value)
                if reply is not None and reply.id == command.id:
                    return reply
        time.sleep(_PAUSE_S)
    return _by_the_journal(log, journal, since, command)


def _by_the_journal(log: Log, journal: str, since: int, command: Command) -> Reply:
    """No owner answered: what is in the journal is done. What the owner began in time may come yet."""
    cause = cause_of(command)
    entries = [entry for _, record in tail(log, journal, since) for entry in record["entries"]]
    eids = sum(last - first + 1 for row in entries if row["cause"] == cause for first, last, *_ in row["runs"])
    if eids:
        return Reply(command.id, "indeterminate", eids, "the owner did not answer; this part is in the journal")
    waited_s = PATIENCE_S + _GRACE_S
    words = (
        f"the owner did not answer within {waited_s:.0f} s; nothing is in the journal, but it may still be carried out"
    )
    return Reply(command.id, "indeterminate", 0, f"{words}: look before you repeat it")


def _by_ourselves(realm: Realm, command: Command, clock: Clock) -> Reply:
    owner = object()
    try:
        realm.execute(command, owner)
        while True:
            for answer in realm.poll():
                if isinstance(answer, Commanded) and answer.owner is owner:
                    return Reply(command.id, answer.answer, answer.count, answer.detail)
            if realm.lost:
                return Reply(command.id, "in-use", 0, "another process took over the realm")
            time.sleep(_PAUSE_S)
    finally:
        realm.close(_CLOSE_S)
