"""`realmgate trace TAG | RUN:SEQ | --message-id ID [--node N]`: from the realm's records, without a gateway or beside
one.

Exit codes: 0 it was found, 1 it was not. Errors: `LogError`, reported by `gateway.cli.main`.
"""

from __future__ import annotations

import argparse
import re
from contextlib import closing
from typing import Any, TextIO

from gateway.cli.answering_log import open_answering
from gateway.cli.output import print_error, printable, write_json
from gateway.cli.trace.events import Place, with_message_id
from gateway.cli.trace.holders import Holders
from gateway.cli.trace.life import Life
from gateway.cli.trace.outcomes import Delivery, Outcome, not_stored, of_delivery
from gateway.cli.trace.reasons import Reasons
from gateway.cli.trace.records import Searched
from gateway.cli.trace.text import document, lines, refusal
from gateway.config.settings import Settings
from native_backend.log.port import Log
from native_backend.nodes.metadata import Metadata
from native_backend.nodes.metadata_writer import realm_metadata

_TAG = re.compile(r"(\d{1,12}):(\d{1,19})")
_DELIVERY = re.compile(r"([0-9a-f]{1,16}-[0-9a-f]{1,16}):(\d{1,19})")
MESSAGES_MAX = 20
"""Messages of one message-id that are traced."""


def run(arguments: argparse.Namespace, settings: Settings, out: TextIO) -> int:
    """One command; its exit code."""
    if (arguments.what is None) == (arguments.message_id is None):
        return print_error("trace: write a delivery tag, RUN:SEQ, or --message-id ID")
    if arguments.node is not None and arguments.message_id is None:
        return print_error("trace: --node goes with --message-id")
    with closing(open_answering(settings, arguments.timeout)) as log:
        search = _Search(log, settings, Holders(arguments.gateway, settings))
        if arguments.message_id is not None:
            if arguments.node is not None and arguments.node not in search.metadata.nodes:
                return print_error(f"there is no node {printable(arguments.node)}")
            search.message_id(arguments.message_id, arguments.node)
        elif tag := _TAG.fullmatch(arguments.what):
            search.place((int(tag[1]), int(tag[2])))
        elif delivery := _DELIVERY.fullmatch(arguments.what):
            search.delivery(delivery[1], int(delivery[2]))
        else:
            return print_error(f"{printable(arguments.what)} is neither a delivery tag (STORE:EID) nor RUN:SEQ")
    if arguments.json:
        write_json(search.document(), out)
    else:
        search.write(out)
    return 0 if search.messages else 1


class _Search:
    """What was found, and where it was looked for."""

    def __init__(self, log: Log, settings: Settings, holders: Holders) -> None:
        self._holders = holders
        self._log, self._prefix = log, settings.realm.prefix
        self._reasons = Reasons(settings.mappings.directory, log, f"{self._prefix}.tables")
        self.metadata: Metadata = realm_metadata(log, self._prefix)
        self.messages: list[dict[str, Any]] = []
        self._searched = Searched()
        self._left_out = 0

    def place(self, place: Place) -> None:
        """Nothing is found of an event that no record speaks of."""
        life = Life(self._log, self._prefix, self.metadata, self._searched)
        life.trace(place)
        if life.steps:
            self._add_life(life)
        else:
            self._searched.lines += life.not_recorded

    def delivery(self, run: str, seq: int) -> None:
        outcome = of_delivery(self._log, f"{self._prefix}.outcomes", (run, seq), self._searched)
        if outcome is None:
            return
        if outcome.place is not None:
            self.place(outcome.place)
            return
        self._add_refusal(outcome)

    def message_id(self, wanted: str, node: str | None) -> None:
        nodes = [candidate for candidate in self.metadata.nodes.values() if node in (None, candidate.name)]
        traced: set[Place] = set()
        published: set[Delivery | None] = set()
        for place in [*with_message_id(self._log, nodes, wanted, self._searched)]:
            if place in traced:
                continue  # a copy of one that is traced already
            if len(self.messages) >= MESSAGES_MAX:
                self._left_out += 1
                continue
            life = Life(self._log, self._prefix, self.metadata, self._searched)
            life.trace(place)
            traced |= life.events.keys()
            published.add(life.published)
            self._add_life(life)
        for outcome in not_stored(self._log, f"{self._prefix}.outcomes", wanted, node, self._searched):
            if outcome.delivery in published:
                continue  # it was not known whether it was stored, and it was
            if len(self.messages) >= MESSAGES_MAX:
                self._left_out += 1
                continue
            self._add_refusal(outcome)

    def _add_life(self, life: Life) -> None:
        for step in life.steps:
            if step.what == "waits" and step.place is not None:
                node = self.metadata.stores[step.place[0]].name
                step.fields |= self._holders.of(step.place, node, step.fields["durable"])
        self._add([document(step, life, self._reasons) for step in life.steps], life.not_recorded)

    def _add_refusal(self, outcome: Outcome) -> None:
        words = {"indeterminate": "whether it was stored, and where", "stored": "where it was stored"}
        missing = [words[outcome.group["answer"]]] if outcome.group["answer"] in words else []
        self._add([refusal(outcome, self._reasons)], missing)

    def _add(self, life: list[dict[str, Any]], not_recorded: list[str]) -> None:
        self.messages.append({"life": life, "not_recorded": [*dict.fromkeys(not_recorded)]})

    def document(self) -> dict[str, Any]:
        searched = [*dict.fromkeys(self._searched.lines)]
        return {
            "found": bool(self.messages),
            "messages": self.messages,
            "left_out": self._left_out,
            "searched": searched,
        }

    def write(self, out: TextIO) -> None:
        for message in self.messages:
            for step in message["life"]:
                out.writelines(f"{line}\n" for line in lines(step))
            out.writelines(f"not recorded: {what}\n" for what in message["not_recorded"])
            out.write("\n")
        if self._left_out:
            out.write(f"{self._left_out} more messages have this message-id\n")
        if not self.messages:
            out.write("not found\n")
        out.writelines(f"searched: {line}\n" for line in dict.fromkeys(self._searched.lines))
