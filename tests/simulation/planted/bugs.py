"""Bugs to plant in the gateway and the realm: each replaces one real function by one that is wrong in one way.

A checker that catches none of them would be worth nothing; `test_planted.py` shows which one catches which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import orjson

from gateway.amqp.link_ends import Link, Outgoing
from gateway.evidence.outcome_key import OutcomeKey
from gateway.evidence.outcomes import Outcomes
from gateway.links import event_to_message as consumed_message_room
from gateway.links.consuming import ConsumingLink
from gateway.links.credit import CreditAccount
from gateway.links.publishing import PublishingLink
from native_backend.dispatch.dispatcher import Dispatcher
from native_backend.dispatch.next_events import EventPicker
from native_backend.events import batch as gathering_room
from native_backend.journal import journal as journal_room
from native_backend.journal import recovery as recovery_room
from native_backend.journal.journal import Journal
from native_backend.journal.settlement import SettlementRequest
from native_backend.journal.snapshot import StateCopy
from native_backend.log.port import LogError
from native_backend.nodes.answers import Published, Settled
from native_backend.publish.publisher import Publisher
from native_backend.shard import snapshot_writer as snapshots_room
from native_backend.state.ack_state import AckState

Original = Callable[..., Any]


@dataclass(frozen=True)
class Bug:
    """`make` takes the original function and gives the wrong one."""

    name: str
    sentence: str
    place: Any
    attribute: str
    make: Callable[[Original], Original]


BUGS: list[Bug] = []


def _bug(place: Any, attribute: str, sentence: str) -> Callable[[Callable[[Original], Original]], None]:
    def plant(make: Callable[[Original], Original]) -> None:
        BUGS.append(Bug(make.__name__.replace("_", " "), sentence, place, attribute, make))

    return plant


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    """The bug lives inside the block."""
    original = bug.place.__dict__[bug.attribute]
    setattr(bug.place, bug.attribute, bug.make(original))
    try:
        yield
    finally:
        setattr(bug.place, bug.attribute, original)


def violations(bug: Bug, words: str, seeds: Iterable[int], live: Callable[[int], list[str]]) -> list[str]:
    """What is said of worlds with the bug, until one says these words."""
    seen: list[str] = []
    for seed in seeds:
        with planted(bug):
            try:
                seen += live(seed)
            except (AssertionError, LogError):  # a bug may break the world before it is checked; that does not count
                continue
        if any(words in violation for violation in seen):
            break
    return seen


# -- the gateway


@_bug(Publisher, "publish", "The publisher hears `accepted` when the event is handed over, not when it is stored.")
def accept_before_stored(original: Original) -> Original:
    class Deaf:
        def answered(self, _: object) -> None:
            """No one listens to the log's own answer."""

    def publish(self: Any, node: Any, keys: list[bytes], values: list[bytes], owner: Any) -> None:
        original(self, node, keys, values, Deaf())
        self._context.answer(Published(owner, 0, [-1] * len(keys), "stored"))

    return publish


@_bug(Outcomes, "tell_published", "What the log could not store leaves no outcome.")
def forget_seq_on_error(original: Original) -> Original:
    def tell_published(self: Any, key: Any, *rest: Any) -> None:
        if key.answer not in ("unavailable", "indeterminate"):
            original(self, key, *rest)

    return tell_published


@_bug(CreditAccount, "complete", "A completed delivery gives its credit back twice.")
def credit_topped_up_twice(original: Original) -> Original:
    return lambda self, count, kept=0: original(self, 2 * count, kept)


@_bug(Outcomes, "_close", "The lowest open seq follows the highest told one.")
def low_advances_over_a_hole(original: Original) -> Original:
    def close(self: Any, seqs: Any) -> None:
        original(self, seqs)
        self._low = max(self._low, max(seqs) + 1)

    return close


@_bug(ConsumingLink, "__init__", "The delivery tag names another store.")
def wrong_store_id_in_tag(original: Original) -> Original:
    def init(self: Any, *arguments: Any) -> None:
        original(self, *arguments)
        self._tag_prefixes = [b"%d:" % (part.store + 1) for part in self.subscription.node.parts]

    return init


@_bug(OutcomeKey, "columns", "The record names the rule of the answer as the rule of the question.")
def rules_recorded_in_each_others_place(original: Original) -> Original:
    def columns(self: Any) -> dict[str, Any]:
        fields: dict[str, Any] = original(self)
        if fields["answer_rule"]:
            fields["rule"], fields["answer_rule"] = fields["answer_rule"], fields["rule"]
        return fields

    return columns


@_bug(PublishingLink, "on_transfers", "Messages that came settled are taken for unsettled ones.")
def presettled_taken_for_unsettled(original: Original) -> Original:
    def on_transfers(self: Any, transfers: Any) -> None:
        transfers.presettled = [0] * len(transfers.presettled)
        original(self, transfers)

    return on_transfers


@_bug(Outcomes, "tell", "Groups differ by their rule alone, not by link, cause and answer.")
def group_identity_mixed(original: Original) -> Original:
    def tell(self: Any, key: Any, *rest: Any) -> None:
        same = [group.key for group in self._groups.values() if group.key.rule is key.rule]
        original(self, same[0] if same else key, *rest)

    return tell


@_bug(Outgoing, "tell_back", "The answer to modified has none of its flags.")
def flags_of_modified_left_out(original: Original) -> Original:
    return lambda self, *rest: None


@_bug(Outgoing, "stated", "A second, different outcome for a delivery that waits goes unnoticed.")
def conflicting_outcome_ignored(original: Original) -> Original:
    def stated(self: Any, pointer: Any, *rest: Any) -> None:
        original(self, pointer, *rest)
        self.waiting.pop(pointer, None)

    return stated


@_bug(Outgoing, "drained", "A drain is not answered when there is nothing to send.")
def drain_not_answered(_: Original) -> Original:
    return lambda self: None


@_bug(ConsumingLink, "_conclude", "A consumer that waits for the answer never gets it.")
def answer_to_the_consumer_forgotten(original: Original) -> Original:
    def conclude(self: Any, batch: Any, answer_rule: Any, answer: Any) -> None:
        settle = self.link.settle
        self.link.settle = lambda *_: None
        original(self, batch, answer_rule, answer)
        self.link.settle = settle

    return conclude


@_bug(Link, "settle", "Deliveries that are settled together get the outcome of the first only.")
def only_the_first_of_a_run_is_settled(original: Original) -> Original:
    return lambda self, seqs, *arguments: original(self, seqs[:1], *arguments)


# -- the realm


@_bug(AckState, "apply", "An attempt that a peer called failed is not counted.")
def return_not_counted(original: Original) -> Original:
    return lambda self, operation, failed, runs, *when: original(self, operation, False, runs, *when)


@_bug(Dispatcher, "settle", "Every return counts as a failed attempt.")
def released_counts(original: Original) -> Original:
    def settle(self: Any, link: Any, settling: SettlementRequest, *arguments: Any) -> None:
        original(self, link, replace(settling, failed=settling.operation == "return"), *arguments)

    return settle


@_bug(AckState, "_terminal", "An acknowledged range ends one event too late.")
def acked_range_off_by_one(original: Original) -> Original:
    return lambda self, first, last, cover: original(self, first, last + 1, cover)


@_bug(AckState, "runs", "An acknowledgement does not take the gap before it along.")
def cover_ignores_the_gap(original: Original) -> Original:
    def runs(self: Any, eids: Any, seqs: Any) -> list[tuple[int, int, int, int]]:
        return [(first, last, seq, first) for first, last, seq, _ in original(self, eids, seqs)]

    return runs


@_bug(Journal, "add", "A consumer is answered when its acknowledgement is queued for the journal.")
def answer_before_the_journal(original: Original) -> Original:
    class Deaf:
        def answered(self, _: object) -> None:
            """No one listens to the journal's own answer."""

    def add(self: Any, settlement: Any) -> None:
        owner, settlement.owner = settlement.owner, Deaf()
        original(self, settlement)
        self._answer(Settled(owner, "done"))

    return add


@_bug(Dispatcher, "settle", "An acknowledged event is available again until the journal has it.")
def redelivery_before_the_journal(original: Original) -> Original:
    def settle(self: Any, link: Any, settling: SettlementRequest, eids: list[int], *arguments: Any) -> None:
        original(self, link, settling, eids, *arguments)
        for eid in eids:
            self.state.returned.add(eid, eid)

    return settle


@_bug(Dispatcher, "settled", "What a link had when its connection was lost is not given to anybody else.")
def lost_on_detach_not_returned(original: Original) -> Original:
    def settled(self: Any, settlement: Any) -> None:
        if settlement.cause != "lost":
            original(self, settlement)

    return settled


@_bug(journal_room, "encode", "The number of a journal record is used twice.")
def journal_number_reused(original: Original) -> Original:
    return lambda run, n, *arguments: original(run, max(2, n - 1), *arguments)


@_bug(snapshots_room, "encode_snapshot", "A snapshot leaves out what was acknowledged above the low mark.")
def snapshot_without_acked(original: Original) -> Original:
    def encode(frozen: StateCopy, *arguments: Any) -> Any:
        poor = AckState(frozen.state.low, frozen.state.position)
        poor.failed = frozen.state.failed
        return original(replace(frozen, state=poor), *arguments)

    return encode


@_bug(recovery_room, "_stretches", "Recovery reads the snapshots and not the journal behind them.")
def recovery_ignores_the_tail(original: Original) -> Original:
    return lambda log, topic, *where: iter(()) if topic.endswith(".journal") else original(log, topic, *where)


@_bug(Journal, "_looked", "A transaction of unknown result is taken for done.")
def unknown_result_taken_for_done(_: Original) -> Original:
    def looked(self: Any, sight: Any) -> None:
        if self._batch is not None:
            self._stored(self._batch, [-1] * len(self._batch.events), self.next + 1)

    return looked


@_bug(Publisher, "publish", "Messages of one batch are stored in the wrong order.")
def batch_stored_backwards(original: Original) -> Original:
    return lambda self, node, keys, values, owner: original(self, node, [*keys][::-1], [*values][::-1], owner)


@_bug(Dispatcher, "__init__", "What a killed gateway may have given is called new.")
def killed_run_forgotten(original: Original) -> Original:
    return lambda self, context, node, durable, state, _: original(self, context, node, durable, state, 0)


@_bug(gathering_room.BatchBuilder, "__init__", "One event more is taken than the link has credit for.")
def one_more_than_credit(original: Original) -> Original:
    return lambda self, count, size: original(self, count + 1, size)


@_bug(consumed_message_room, "redelivered_header", "An event that comes again looks as it did the first time.")
def header_as_the_first_time(_: Original) -> Original:
    return lambda value, failed, again: value


@_bug(AckState, "reopen", "What a killed gateway had given, and no consumer settled, is not given again.")
def recovery_forgets_what_was_given(_: Original) -> Original:
    return lambda self: None


@_bug(Publisher, "completed", "What the log could not store is answered as stored.")
def failure_taken_for_stored(original: Original) -> Original:
    return lambda self, appended: original(self, replace(appended, failure=None))


@_bug(EventPicker, "given", "Of the last event of each batch it is not kept which link has it.")
def given_not_written_down(original: Original) -> Original:
    def given(self: Any, link: Any, chunk: Any, eids: list[int]) -> None:
        original(self, link, chunk, eids[:-1])

    return given


@_bug(journal_room, "encode", "A journal record leaves out its last entry.")
def last_entry_left_out(original: Original) -> Original:
    def encode(*arguments: Any) -> Iterator[bytes]:
        for value in original(*arguments):
            record = orjson.loads(value)
            record["entries"] = record["entries"][:1]
            yield orjson.dumps(record)

    return encode


__all__ = ["BUGS", "Bug", "planted"]
