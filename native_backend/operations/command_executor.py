"""The owner's desk: commands of operators are carried out one after another, each through the journal.

They come out of `<prefix>.commands`, looked at every `command_interval_s`, from the end that it had when this process
claimed the shard: what was asked of an earlier owner is answered by nobody, and whoever asked learns from the journal
what became of it. Or they come by `execute`, from a process that claimed the shard for that.
May import: the standard library, `native_backend` below it.
"""

from __future__ import annotations

import logging
from collections import deque

from native_backend.answers import CommandAnswer, Commanded
from native_backend.capacity import Capacities
from native_backend.commands import (
    Command,
    Reply,
    answers_topic,
    cause_of,
    commands_topic,
    decode_command,
    encode_reply,
)
from native_backend.dispatch import Dispatch
from native_backend.durable_changes import Deletion, Done, Purge, Seek
from native_backend.log import LogError, Records
from native_backend.metadata import Metadata, read_tail
from native_backend.moving import Move
from native_backend.node_deletion import Follow, NodeDeletion
from native_backend.nodes import Node
from native_backend.services import Services, subscribe_answer
from native_backend.shard import Shard

_LOG = logging.getLogger(__name__)


class CommandDesk:
    """See the module's docstring."""

    def __init__(
        self, services: Services, metadata: Metadata, shard: Shard, capacities: Capacities, follow: Follow
    ) -> None:
        self._services, self._metadata, self._shard, self._follow = services, metadata, shard, follow
        self._capacities = capacities
        self._waiting: deque[tuple[Command, object | None]] = deque()
        self._busy = False
        self._at: tuple[int, str] | None = None
        self._position: int | None = None
        self._reading = False
        self._look_s = 0.0

    @property
    def busy(self) -> bool:
        return self._busy or bool(self._waiting)

    def works_on(self, store: int, durable: str) -> bool:
        """Whether a command for it is being carried out."""
        return self._at == (store, durable)

    def begin(self) -> None:
        """From the end as it is now. Blocks; raises LogError."""
        self._position = self._services.log.bounds(
            commands_topic(self._services.prefix), 0, self._services.limits.control_deadline_s
        )[1]

    def execute(self, command: Command, owner: object) -> None:
        """Answered by `Commanded`."""
        self._waiting.append((command, owner))

    def advance(self) -> None:
        """Look for commands when it is time to; begin the next one."""
        if self._services.journal.fenced:
            return
        now_s = self._services.clock.monotonic_s()
        if self._position is not None and not self._reading and now_s >= self._look_s:
            self._look_s = now_s + self._services.limits.command_interval_s
            self._reading = True
            log, topic, start = self._services.log, commands_topic(self._services.prefix), self._position
            self._services.control.submit(lambda: read_tail(log, topic, start), self._read)
        if self._waiting and not self._busy:
            self._busy = True
            self._next(*self._waiting.popleft())

    def _read(self, parts: list[Records] | LogError) -> None:
        self._reading = False
        if isinstance(parts, LogError):
            _LOG.warning("cannot look for commands now: %s", parts)
            return
        for records in parts:
            self._position = max(self._position or 0, records.next)
            for offset, value in zip(records.offsets, records.values, strict=True):
                command = None if value is None else decode_command(value)
                if command is not None:
                    self._waiting.append((command, None))
                else:
                    _LOG.warning("command at offset %d is not understood by this release, and ignored", offset)

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
        self._at = command.store, command.durable
        node = self._metadata.nodes.get(command.node)  # of one whose topic is another's there are no stores
        node = self._metadata.stores.get(command.store, node)
        if node is None or node.name != command.node or node.store != command.store:
            done("not-found", 0, f"there is no node {command.node!r}, or it was created anew")
            return
        if self._services.clock.epoch_us() > command.until_us:
            done("unavailable", 0, "the command came too late; nothing was done")
        elif command.what == "delete-node":
            with_topic = command.to == "topic"
            NodeDeletion(self._services, node, with_topic, cause_of(command), self._follow, done).begin()
        else:
            self._begin_on_durable(command, node, done)

    def _begin_on_durable(self, command: Command, node: Node, done: Done) -> None:
        durable = self._metadata.durable(node.part(0), command.durable)
        if durable is None or self._shard.ending(durable.store, durable.name):
            done("not-found", 0, f"node {command.node!r} has no durable {command.durable!r}")
        elif command.what == "delete":
            Deletion(self._services, self._shard, node, durable, cause_of(command), done).begin()
        else:
            self._shard.open(node, durable.name, lambda found: self._opened(command, found, done))

    def _opened(self, command: Command, found: Dispatch | LogError, done: Done) -> None:
        if isinstance(found, LogError):
            answer = subscribe_answer(found.failure)
            done(answer if answer in ("not-found", "in-use", "access-denied") else "unavailable", 0, str(found))
        elif command.what == "seek" and found.links:
            done("in-use", 0, f"{len(found.links)} consumers are attached: stop them first")
        elif command.what == "move":
            self._move(command, found, done)
        elif command.what == "seek":
            Seek(self._services, found, cause_of(command), done).begin(command.eid)
        else:
            Purge(self._services, found, cause_of(command), done).begin(command.eid)

    def _move(self, command: Command, found: Dispatch, done: Done) -> None:
        target = self._metadata.nodes.get(command.to)
        if target is None:
            done("not-found", 0, f"there is no node {command.to!r} to move to")
        elif target.name == command.node:
            done("unexpected", 0, "a node's events cannot be moved to itself")
        else:
            target = target.twin(found.node)
            Move(self._services, self._capacities, found, target, cause_of(command), done).begin(command.count)

    def _done(self, command: Command, owner: object | None, answer: CommandAnswer, count: int, detail: str) -> None:
        self._busy, self._at = False, None
        _LOG.info(
            "%s of %r, durable %r: %s, %d EIDs %s", command.what, command.node, command.durable, answer, count, detail
        )
        if owner is not None:
            self._services.answer(Commanded(owner, answer, count, detail))
            return
        services = self._services
        value = encode_reply(Reply(command.id, answer, count, detail), services.run, services.clock.epoch_us())
        key, topic, deadline_s = command.id.encode(), answers_topic(services.prefix), services.limits.control_deadline_s
        services.control.submit(lambda: services.log.put(topic, key, value, deadline_s), _warned)


def _warned(result: int | LogError) -> None:
    if isinstance(result, LogError):
        _LOG.warning("a command was carried out, its answer could not be stored: %s", result)
