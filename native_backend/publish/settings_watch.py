"""Looks once a minute whether the settings of the realm's topics keep what is stored: those of its own, and of nodes.

What would lose acknowledgements or nodes stops the start. All else is shown as a trouble, until it is mended. What
could not be looked at is shown as that. A log without brokers has no such settings.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence

from native_backend.dispatch.context import RealmContext
from native_backend.log.port import Failure, Inspection, LogError
from native_backend.nodes.metadata import realm_topics
from native_backend.nodes.topic_settings import SettingFault, Wanted, faults, is_vital
from native_backend.state.troubles import Kind

_LOG = logging.getLogger(__name__)
_LOOK_S = 1.0
_SHOWN = 3
_KINDS: Mapping[str, Kind] = {"deletes": "topic-deletes", "loses": "topic-risks", "risks": "topic-risks"}
_PASSES = ("unavailable", "indeterminate")  # and is shown by others


class SettingsWatch:
    """Watches the topics of one realm."""

    def __init__(self, context: RealmContext) -> None:
        self._context = context
        self._metadata = context.metadata
        self._own = {topic: Wanted(compacted) for topic, compacted in realm_topics(context.prefix).items()}
        self._round: deque[str] = deque()  # topics that are still to be looked at in this one
        self._found: dict[str, list[SettingFault]] = {}  # by topic, of this round
        self._unread: list[str] = []
        self._round_s = 0.0  # when the next one begins
        self._timer = context.timers.timer("settings of topics", self._look)
        self._timer.soon()

    def open(self) -> None:
        """Look at the realm's own topics. Blocks; raises LogError where one would lose what the realm lives by."""
        inspected = self._inspect([*self._own])
        if inspected is None:  # there are no such settings
            self._timer.stop()
            return
        if inspected.risk:
            _LOG.warning("%s: see `realmgate doctor`", inspected.risk)
        for topic, state in inspected.topics.items():
            for fault in faults(topic, state, self._own[topic], inspected.brokers):
                if fault.grade == "deletes" and is_vital(self._context.prefix, topic):
                    raise LogError(Failure("invalid", f"{fault.detail}: {fault.remedy}"))

    def _look(self) -> None:
        """At the next few topics of a round, or begin one."""
        if not self._round:
            self._round_s = self._context.clock.monotonic_s() + self._context.limits.settings_round_s
            self._round.extend(self._topics())
            self._found, self._unread = {}, []
        few = min(len(self._round), self._context.limits.settings_round_topics)
        topics = [self._round.popleft() for _ in range(few)]
        self._context.worker.submit(lambda: self._inspect(topics), lambda seen: self._looked(topics, seen))

    def _inspect(self, topics: Sequence[str]) -> Inspection | None:
        control, deadline_s = self._context.log.control, self._context.limits.control_deadline_s
        return control.inspect(topics, deadline_s, whole=False)

    def _topics(self) -> dict[str, tuple[str, Wanted]]:
        """All of the realm: the node's name, empty for the realm's own, and what the topic is for."""
        nodes = self._metadata.nodes.values()
        of_nodes = {node.topic: (node.name, Wanted(adopted=node.adopted)) for node in nodes}
        return of_nodes | {topic: ("", wanted) for topic, wanted in self._own.items()}

    def _plan(self) -> None:
        """The rest of the round, or the next one."""
        look_s = self._context.clock.monotonic_s() + _LOOK_S
        self._timer.at(look_s if self._round else max(look_s, self._round_s))

    def _looked(self, topics: Sequence[str], seen: Inspection | LogError | None) -> None:
        if isinstance(seen, LogError):
            self._round.clear()
            self._plan()
            if seen.failure.cause not in _PASSES:
                self._context.troubles.begin("topic-settings-unread", str(seen))
            return
        self._plan()
        if seen is None:
            return
        known = self._topics()
        for topic in [name for name in topics if name in known]:  # a node may have been deleted meanwhile
            if (state := seen.topics.get(topic)) is not None:
                self._found[topic] = list(faults(topic, state, known[topic][1], seen.brokers))
            elif topic in self._own or topic in seen.unread:  # one of a node that is not there has a trouble of its own
                self._unread.append(topic)
        if not self._round:
            self._tell(known)

    def _tell(self, known: Mapping[str, tuple[str, Wanted]]) -> None:
        """At the end of a round."""
        troubles = self._context.troubles
        if self._unread:
            words = f"{', '.join(self._unread[:_SHOWN])}: not there, or their settings may not be read"
            troubles.begin("topic-settings-unread", words)
        else:
            troubles.end("topic-settings-unread")
        each_of: dict[tuple[Kind, str], list[str]] = {}
        for topic in [name for name in self._found if name in known]:
            for fault in self._found[topic]:
                place = _KINDS[fault.grade], known[topic][0]
                each_of.setdefault(place, []).append(f"{fault.detail} ({fault.remedy})")
        for trouble in troubles.present():
            if trouble.kind in _KINDS.values() and (trouble.kind, trouble.about) not in each_of:
                troubles.end(trouble.kind, trouble.about)
        for (kind, about), details in each_of.items():
            more = f"; and {len(details) - _SHOWN} more" if len(details) > _SHOWN else ""
            troubles.begin(kind, "; ".join(details[:_SHOWN]) + more, about)
