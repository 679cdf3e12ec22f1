"""What is wrong with a gateway now, as an operator is shown it: what it is, what it says itself, and what to do.

A problem of `KEEPS_OUT` keeps peers out as a whole: the gateway is not ready while it stands. All others leave what
they do not concern as it is: the gateway is degraded. An alarm cannot be mended; it is a problem for `ALARM_S` after it
has grown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gateway.admin.watched import Watched
from gateway.config.settings import EmbeddedRealm
from native_backend.dispatch import dead_letters
from native_backend.dispatch import retention_loss as losses
from native_backend.nodes import broken_nodes
from native_backend.publish import evidence
from native_backend.shard import journal_ends, truncation
from native_backend.state import mistakes
from native_backend.state.troubles import Trouble

if TYPE_CHECKING:
    from gateway.session.gateway import Gateway

KEEPS_OUT: Final = ("lease-lapsed", "cannot-write", "turn-fails")
ALARM_S: Final = 3_600
_LATER: Final = "waiting records are stored then; nothing else is needed"
_OURS: Final = "the gateway itself is wrong: report the traceback in its log; restart it where work stands still"
_REMEDIES: Final = {
    **{f"topic-{how}": remedy for how, remedy in broken_nodes.REMEDIES.items()},
    "topic-deletes": "set them back with the commands that it names",
    "topic-risks": "do what it names",
    "topic-settings-unread": "give the gateway's user DescribeConfigs on its topics, and Describe on the cluster",
    "evidence-waits": f"make sure that the log accepts records; {_LATER}",
    "evidence-refused": "make sure that the topic PREFIX.outcomes exists and that the gateway may write to it",
    "access-lists-unread": "give the gateway's user Describe on the cluster, or make sure that the log can be reached",
    "turn-fails": _OURS,
    "tables-refused": "correct what reload.problems names; the previous tables stay active",
    "users-refused": "correct what it names; the previous users stay active",
    "certificates-refused": "correct what it names; the previous certificates stay active",
}
_SHORTER: Final = "find out what made the topic shorter (an unclean election, a lost disk, a restored backup)"
_ALARMS: Final = {
    losses.ALARM: "the log's retention deletes unacknowledged events: set retention.ms=-1 on the node's topic",
    truncation.ALARM: f"{_SHORTER}; events stored from now on are delivered",
    journal_ends.TRUNCATED: f"{_SHORTER}; the events acknowledged last may be delivered again",
    journal_ends.TRIMMED: "events may be delivered again: set retention.ms=-1 and retention.bytes=-1 on PREFIX.journal",
    dead_letters.ALARM: "the events stay in their node: make sure that the topic of its dead-letter node is there, "
    "that the gateway may write to it, and that its max.message.bytes is larger than that of the node's own topic",
    mistakes.ALARM: _OURS,
    evidence.ALARM: "reconciliation will show gaps; make sure that the log accepts records",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """`kind` is one word, for programs; `about` a node or an alarm; `since_us` of the epoch, 0: not known."""

    kind: str
    about: str
    detail: str
    remedy: str
    since_us: int

    def __str__(self) -> str:
        return f"{self.kind}{f' ({self.about})' if self.about else ''}: {self.detail}: {self.remedy}"


def problems(watched: Watched) -> list[Problem]:
    """Those that there are now; what keeps peers out comes first."""
    gateway = watched.gateway
    listed = [_of_realm(gateway, trouble) for trouble in gateway.realm.metrics.troubles]
    listed += _refused(watched)
    listed += _alarms(gateway)
    return sorted(listed, key=lambda problem: problem.kind not in KEEPS_OUT)


def _of_realm(gateway: Gateway, trouble: Trouble) -> Problem:
    remedy = _REMEDIES.get(trouble.kind) or _of_log(gateway, trouble.kind)
    if trouble.about:
        remedy = remedy.replace("NODE", trouble.about)
    return Problem(trouble.kind, trouble.about, trouble.detail, remedy, trouble.since_us)


def _of_log(gateway: Gateway, kind: str) -> str:
    """Of what concerns the whole log."""
    settings = gateway.settings
    place = settings.realm.place
    if kind != "cannot-write":
        return f"make sure that {place} answers; the gateway then continues by itself"
    if isinstance(settings.realm, EmbeddedRealm):
        return f"make room on the disk of {settings.realm.path}, or let the gateway write there; {_LATER}"
    return f"make sure that {place} accepts records (disks, min.insync.replicas, rights); {_LATER}"


def _refused(watched: Watched) -> Iterator[Problem]:
    """Files that were read again and not used."""
    for files in watched.files:
        if files.problems:
            kind = f"{files.kind}-refused"
            yield Problem(kind, "", files.problems[0], _REMEDIES[kind], files.refused_us)


def _alarms(gateway: Gateway) -> Iterator[Problem]:
    alarms, now_us = gateway.realm.metrics.alarms, gateway.clock.epoch_us()
    for name, count in alarms.items():
        raised_us = alarms.raised_us.get(name, 0)
        if now_us - raised_us < ALARM_S * 1_000_000:
            remedy = _ALARMS.get(name, "the gateway's log names the node and says what to do")
            yield Problem("alarm", name, f"{count} in this run", remedy, raised_us)
