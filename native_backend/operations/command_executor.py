"""Commands of operators, which the owner carries out one after another, each through the journal.

They come from `<prefix>.commands`, read every `command_interval_s`, from the end that it had when this process claimed
the shard. A command to an earlier owner gets no answer: its sender reads the result from the journal. Or they come by
`execute`, from a process that claimed the shard for that. Each has its record and its answer either way.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator

from native_backend.dispatch.context import RealmContext, subscribe_answer
from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.log.port import LogError, Records
from native_backend.nodes.answers import Commanded
from native_backend.nodes.commands import (
    Command,
    Reply,
    answers_topic,
    cause_of,
    commands_topic,
    decode_command,
    decode_note,
    encode_command,
    encode_reply,
)
from native_backend.nodes.metadata import read_tail
from native_backend.nodes.node import Node
from native_backend.nodes.words import CommandAnswer
from native_backend.operations.durable_changes import Deletion, Done, Purge, Seek
from native_backend.operations.move import Move
from native_backend.operations.node_deletion import Follow, NodeDeletion
from native_backend.operations.route import Route, Selecting, moved_to, purged, to_origin
from native_backend.publish.capacities import Capacities
from native_backend.shard.counts_report import report
from native_backend.shard.shard import Shard

_LOG = logging.getLogger("realmgate.commands")
_IDS_KEPT = 4096


class CommandExecutor:
    """See the module's docstring."""

    def __init__(
        self,
        context: RealmContext,
        shard: Shard,
        capacities: Capacities,
        follow: Follow,
        selecting: Selecting,
    ) -> None:
        self._context, self._metadata, self._shard, self._follow = context, context.metadata, shard, follow
        self._capacities, self._selecting = capacities, selecting
        self._waiting: deque[tuple[Command, object | None]] = deque()
        self._ids: dict[str, None] = {}  # of the last ones: `execute` wrote them down, or they were read
        self._busy = False
        self._at: tuple[int, str] | None = None
        self._position: int | None = None
        self._timer = context.timers.timer("looks for commands", self._look)
        self._next_one = context.timers.timer("commands", self._begin_next)
        self._counting = context.timers.timer("counts of messages", self._count_on)
        self._counts: Iterator[None] | None = None  # one that is being made

    @property
    def busy(self) -> bool:
        return self._busy or bool(self._waiting)

    def works_on(self, store: int, durable: str) -> bool:
        """Whether a command for it is being carried out."""
        return self._at == (store, durable)

    def begin(self) -> None:
        """From the end as it is now. Blocks; raises LogError."""
        self._position = self._context.log.control.bounds(
            commands_topic(self._context.prefix), 0, self._context.limits.control_deadline_s
        )[1]
        self._timer.soon()

    def execute(self, command: Command, owner: object) -> None:
        """Answered by `Commanded`. Recorded first, like what comes from elsewhere."""
        context = self._context
        key, value = command.id.encode(), encode_command(command, context.clock.epoch_us())
        topic, deadline_s = commands_topic(context.prefix), context.limits.control_deadline_s
        self._remember(command)

        def recorded(result: int | LogError) -> None:
            if isinstance(result, LogError):
                context.answer(Commanded(owner, "unavailable", 0, f"the command could not be recorded: {result}"))
            else:
                self._waiting.append((command, owner))
                self._next_one.soon()

        context.worker.submit(lambda: context.log.control.put(topic, key, value, deadline_s), recorded)

    def _look(self) -> None:
        """For commands that others wrote."""
        if self._position is not None and not self._context.journal.fenced:
            log, topic, start = self._context.log, commands_topic(self._context.prefix), self._position
            self._context.worker.submit(lambda: read_tail(log, topic, start), self._read)

    def _count_on(self) -> None:
        """A step of the count that is being made."""
        if self._counts is None or self._context.journal.fenced:
            return
        if next(self._counts, self) is self:
            self._counts = None
        else:
            self._counting.soon()

    def _begin_next(self) -> None:
        if self._waiting and not self._busy and not self._context.journal.fenced:
            self._busy = True
            self._next(*self._waiting.popleft())

    def _read(self, parts: list[Records] | LogError) -> None:
        self._timer.after(self._context.limits.command_interval_s)
        if isinstance(parts, LogError):
            _LOG.warning("cannot look for commands now: %s", parts)
            return
        for records in parts:
            self._position = max(self._position or 0, records.next)
            for offset, value in zip(records.offsets, records.values, strict=True):
                command = None if value is None else decode_command(value)
                if command is not None:
                    if self._remember(command):
                        self._waiting.append((command, None))
                        self._next_one.soon()
                elif value is None or decode_note(value) is None:
                    _LOG.warning("command at offset %d is not understood by this release, and ignored", offset)

    def _remember(self, command: Command) -> bool:
        """False if it was known: the client of a sender that saw no answer of the broker in time stores it again."""
        if command.id in self._ids:
            return False
        self._ids[command.id] = None
        if len(self._ids) > _IDS_KEPT:
            del self._ids[next(iter(self._ids))]
        return True

    def _next(self, command: Command, owner: object | None) -> None:
        def done(answer: CommandAnswer, count: int, detail: str) -> None:
            self._done(command, owner, answer, count, detail)

        def followed(error: LogError | None) -> None:
            if error is None:
                self._begin(command, done)
            else:
                done("unavailable", 0, str(error))

        self._follow(followed)

    def _begin(self, command: Command, done: Done) -> None:
        if command.what == "count":
            self._counts = report(self._shard.depths, command, self._context.clock, done)
            self._counting.soon()
            return
        self._at = command.store, command.durable
        node = self._metadata.nodes.get(command.node)  # of one whose topic is another's there are no stores
        node = self._metadata.stores.get(command.store, node)
        if node is None or node.name != command.node or node.store != command.store:
            done("not-found", 0, f"there is no node {command.node!r}, or it was created anew")
            return
        if self._context.clock.epoch_us() > command.until_us:
            done("unavailable", 0, "the command came too late; nothing was done")
        elif command.what == "delete-node":
            with_topic = command.to == "topic"
            NodeDeletion(self._context, node, with_topic, cause_of(command), self._follow, done).begin()
        else:
            self._begin_on_durable(command, node, done)

    def _begin_on_durable(self, command: Command, node: Node, done: Done) -> None:
        durable = self._metadata.durable(node.part(0), command.durable)
        ending = durable is not None and self._shard.is_being_deleted(durable.store, durable.name)
        ended = self._shard.terms(node.part(0), command.durable) is None  # perhaps not erased: that can be done again
        if durable is None or ending or (ended and command.what != "delete"):
            done("not-found", 0, f"node {command.node!r} has no durable {command.durable!r}")
        elif command.what == "delete":
            Deletion(self._context, self._shard, node, durable, cause_of(command), done).begin()
        else:
            self._shard.open(node, durable.name, lambda opened: self._opened(command, opened, done))

    def _opened(self, command: Command, opened: Dispatcher | LogError, done: Done) -> None:
        if isinstance(opened, LogError):
            answer = subscribe_answer(opened.failure)
            done(answer if answer in ("not-found", "in-use", "access-denied") else "unavailable", 0, str(opened))
        elif command.what == "seek" and opened.links:
            done("in-use", 0, f"{len(opened.links)} consumers are attached: stop them first")
        elif command.what == "seek":
            Seek(self._context, opened, cause_of(command), done).begin(command.eid)
        elif command.what == "purge" and not command.where:
            Purge(self._context, opened, cause_of(command), done).begin(command.eid)
        else:
            self._send(command, opened, done)

    def _send(self, command: Command, dispatcher: Dispatcher, done: Done) -> None:
        """Chosen events leave: to a node, to the nodes that they came from, or for ever."""
        route = self._route(command, dispatcher)
        if isinstance(route, Route):
            Move(self._context, self._capacities, dispatcher, route, cause_of(command), done).begin(
                command.count, command.eid
            )
        else:
            done(*route)

    def _route(self, command: Command, dispatcher: Dispatcher) -> Route | tuple[CommandAnswer, int, str]:
        """Where to, or the answer to a command that cannot be carried out."""
        wanted = self._selecting(command.where) if command.where else None
        if command.where and wanted is None:
            return "unexpected", 0, f"{command.where!r} is no selector"
        if command.what == "resend":
            return to_origin(self._metadata.stores, wanted)
        if wanted is not None and command.what == "purge":
            return purged(wanted)
        target = self._metadata.nodes.get(command.to)
        if target is None:
            return "not-found", 0, f"there is no node {command.to!r} to move to"
        if target.name == command.node:
            return "unexpected", 0, "a node's events cannot be moved to itself"
        return moved_to(target.twin(dispatcher.node), wanted)

    def _done(self, command: Command, owner: object | None, answer: CommandAnswer, count: int, detail: str) -> None:
        self._busy, self._at = False, None
        self._next_one.soon()
        level = logging.DEBUG if command.what == "count" else logging.INFO  # it changes nothing
        _LOG.log(level, "%s", _words(command, answer, count, detail), extra=_about(command, answer, count, detail))
        context = self._context
        if owner is not None:
            context.answer(Commanded(owner, answer, count, detail))
        value = encode_reply(Reply(command.id, answer, count, detail), context.run, context.clock.epoch_us())
        key, topic, deadline_s = command.id.encode(), answers_topic(context.prefix), context.limits.control_deadline_s
        context.worker.submit(lambda: context.log.control.put(topic, key, value, deadline_s), _warned)


def _warned(result: int | LogError) -> None:
    if isinstance(result, LogError):
        _LOG.warning("a command was carried out, its answer could not be stored: %s", result)


def _words(command: Command, answer: str, count: int, detail: str) -> str:
    """For a person; what is a list for programs stands in the facts only."""
    place = f"{command.node!a}, durable {command.durable!a}" if command.durable else f"{command.node!a}"
    by = f" by {command.who!a}{f': {command.why!a}' if command.why else ''}" if command.who else ""
    unit = "messages" if command.what in ("move", "resend") else "EIDs"
    more = f" ({detail})" if detail and command.what not in ("count", "resend") else ""
    return f"{command.what} of {place}{by}: {answer}, {count} {unit}{more}"


def _about(command: Command, answer: str, count: int, detail: str) -> dict[str, object]:
    """Of the log's line, as `gateway.serve.log_format` writes it."""
    known = {"id": command.id, "what": command.what, "node": command.node, "durable": command.durable}
    known |= {"who": command.who, "why": command.why, "answer": answer, "detail": detail}
    return {"about": {"event": "command", "count": count, **{name: value for name, value in known.items() if value}}}
