"""`realmgate drain`: one run, and what it says at its end.

Exit codes: 0 the queue is empty and both ends agree; 1 messages are left at the source, a peer refuses a link, or the
ends do not agree; 2 it could not run, or broke off: started again, it goes on.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TextIO

from gateway.cli.client.client_problem import ClientProblem
from gateway.cli.client.connection import Peer, connected
from gateway.cli.client.peer_address import from_settings, from_url
from gateway.cli.drain.arguments import FROM_PASSWORD, FROM_USER
from gateway.cli.drain.counts import counted_by_broker, counted_by_realm
from gateway.cli.drain.destination import Destination
from gateway.cli.drain.moving import Moved, Moving
from gateway.cli.drain.source import Source
from gateway.cli.drain.transaction import Rejected
from gateway.cli.output import print_error, printable, write_json, write_table
from gateway.config.settings import Settings, load_settings

_COULD_NOT_RUN: Final = 2
_COUNT_S: Final = 5.0


@dataclass(slots=True)
class Ends:
    """Messages that each end holds, before and after; None: its broker does not say."""

    source_before: int | None = None
    source_after: int | None = None
    realm_before: int | None = None
    realm_after: int | None = None

    def differences(self, moved: Moved, copies: int) -> list[str]:
        """Where an end does not agree with what was moved."""
        sentences = []
        if self.source_after is not None and self.source_after > moved.refused:
            sentences.append(
                f"the source still counts {self.source_after} messages: a consumer holds them, or they are for later"
            )
        if self.source_before is not None and self.source_before - moved.settled - moved.refused:
            sentences.append(f"the source counted {self.source_before} messages before, {moved.settled} came from it")
        if self.realm_before is not None and self.realm_after is not None:
            grown = self.realm_after - self.realm_before
            if grown != moved.stored * copies:
                sentences.append(
                    f"the destination counts {grown} messages more than before, {moved.stored * copies} were stored"
                )
        return sentences


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Raises SettingsProblems."""
    try:
        settings = None if arguments.url is not None else load_settings(arguments.config)
        source = from_url(arguments.source, os.environ, arguments.from_ca, "FROM-URL", (FROM_USER, FROM_PASSWORD))
        source = replace(source, ca_word="--from-ca")
        if settings is None:
            target = from_url(arguments.url, os.environ, arguments.ca)
        else:
            target = from_settings(settings, os.environ, arguments.ca)
        with connected(source, arguments.timeout) as old, connected(target, arguments.timeout) as new:
            old.beside, new.beside = new, old
            return _drain(_Drain(arguments, old, new, source.url, settings), out)
    except ClientProblem as error:
        print_error(str(error))
        return 1 if error.refused else _COULD_NOT_RUN


@dataclass(frozen=True, slots=True)
class _Drain:
    """What one run is about."""

    arguments: argparse.Namespace
    old: Peer
    new: Peer
    url: str
    settings: Settings | None

    @property
    def queue(self) -> str:
        return str(self.arguments.queue)

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.arguments.to)) or (self.queue,)

    def counted_at_realm(self) -> int | None:
        """In all targets together."""
        if self.settings is not None:
            by_node = counted_by_realm(self.settings, self.targets)
            return sum(by_node.values()) if len(by_node) == len(self.targets) else None
        counts = [counted_by_broker(self.new, target) for target in self.targets]
        return None if None in counts else sum(count or 0 for count in counts)

    def counted_at_source(self, expected: int | None) -> int | None:
        """Waits a moment for what is expected: a broker may count what it has settled a little later."""
        until_s = time.monotonic() + _COUNT_S
        while True:
            count = counted_by_broker(self.old, self.queue)
            if count is None or expected is None or count == expected or time.monotonic() > until_s:
                return count
            self.old.keep_alive()


def _drain(drain: _Drain, out: TextIO) -> int:
    timeout_s, ledger = drain.arguments.timeout, drain.arguments.ledger or f"drain.{drain.queue}"
    source = Source(drain.old, drain.queue, timeout_s, drain.arguments.empty_after)
    destination = Destination(drain.new, drain.targets, ledger, timeout_s)
    record = destination.ledger.begin(drain.url, drain.queue, drain.targets)
    ends = Ends(source_before=drain.counted_at_source(None), realm_before=drain.counted_at_realm())
    moving = Moving(source, destination, record, _tell)
    code = 0
    try:
        moving.run()
    except (ClientProblem, Rejected) as error:
        print_error(f"{error}; {moving.moved.settled} messages were moved before that: start again, and it goes on")
        code = 1 if isinstance(error, Rejected) or error.refused else _COULD_NOT_RUN
    else:
        ends.source_after = drain.counted_at_source(moving.moved.refused)
        ends.realm_after = drain.counted_at_realm()
        destination.ledger.give_back()
    different = ends.differences(moving.moved, len(drain.targets))
    document = _document(drain, moving, ends, ledger, different)
    if drain.arguments.json:
        write_json(document, out)
    else:
        _report(document, out)
    return code or int(bool(different or moving.moved.refused))


def _tell(line: str) -> None:
    sys.stderr.write(f"realmgate: {line}\n")
    sys.stderr.flush()


def _document(drain: _Drain, moving: Moving, ends: Ends, ledger: str, different: list[str]) -> dict[str, Any]:
    of_run = {"source": drain.url, "queue": drain.queue, "to": list(drain.targets), "ledger": ledger}
    in_all = {"stored_in_all_runs": moving.record.moved}
    return {**of_run, **asdict(moving.moved), **in_all, "counted": asdict(ends), "differences": different}


def _report(document: dict[str, Any], out: TextIO) -> None:
    rows = [
        ("stored in the realm", document["stored"], "and settled at the source"),
        ("stored by an earlier run", document["known"], "settled at the source, not stored again"),
        ("perhaps stored twice", document["doubtful"], "no message-id, alike to one that an earlier run stored"),
        ("refused", document["refused"], "they are at the source"),
    ]
    titles = (f"{printable(document['queue'])} to {', '.join(map(printable, document['to']))}", "MESSAGES", "")
    write_table(titles, [(name, f"{number:,}", about) for name, number, about in rows], out)
    counted = document["counted"]
    ends = (("source", "source_before", "source_after"), ("destination", "realm_before", "realm_after"))
    out.write("\n")
    write_table(
        ("COUNTED AT", "BEFORE", "AFTER"),
        [(name, _number(counted[before]), _number(counted[after])) for name, before, after in ends],
        out,
    )
    ledger = printable(document["ledger"])
    out.write(f"\nall runs together stored {document['stored_in_all_runs']:,} messages (ledger {ledger})\n")
    for message_id in document["known_ids"]:
        out.write(f"stored by an earlier run: {printable(message_id)}\n")
    if document["known"] > len(document["known_ids"]):
        out.write(f"stored by an earlier run: {document['known'] - len(document['known_ids'])} more\n")
    for refusal in document["refusals"]:
        out.write(f"refused: {printable(refusal)}\n")
    for difference in document["differences"]:
        out.write(f"the ends do not agree: {difference}\n")


def _number(number: int | None) -> str:
    return "not known" if number is None else f"{number:,}"
