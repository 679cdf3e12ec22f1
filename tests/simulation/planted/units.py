"""Bugs to plant in units, what they hold, and trimming; see `bugs.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from native_backend.journal.journal import Journal
from native_backend.log.port import Append
from native_backend.nodes.answers import Committed
from native_backend.publish.commit import Commit
from native_backend.shard import queue_trimmer as trimming_room
from native_backend.shard.shard import Shard
from native_backend.state.ack_state import remove_all
from native_backend.state.intervals import dense_runs
from native_backend.subscriptions import durable_subscription as subscription_room
from native_backend.subscriptions.partitioned import PartitionedSubscription, partition_of
from tests.simulation.planted.bugs import Bug, Original

BUGS: dict[str, Bug] = {}
WORDS: dict[str, str] = {}  # of the violation that each leads to


def _bug(place: Any, attribute: str, sentence: str, words: str) -> Callable[[Callable[[Original], Original]], None]:
    def plant(make: Callable[[Original], Original]) -> None:
        name = make.__name__.replace("_", " ")
        BUGS[name] = Bug(name, sentence, place, attribute, make)
        WORDS[name] = words

    return plant


@_bug(Commit, "_prepare", "The first node's events are appended before the unit, not with it.", "torn")
def first_posting_ahead(original: Original) -> Original:
    def prepare(self: Any) -> None:
        if len(self._postings) > 1:
            first, self._postings = self._postings[0], self._postings[1:]
            self._context.log.append(Append(first.node.topic, 0, first.keys, first.values, None))
        original(self)

    return prepare


@_bug(Journal, "_refuse", "A unit that could not be stored is answered as done.", "lost")
def failed_unit_taken_for_done(original: Original) -> Original:
    def refuse(self: Any, items: Any, cause: str, native: str) -> None:
        answer, self._answer = self._answer, lambda outcome: answer(replace(outcome, answer="done"))
        original(self, items, cause, native)
        self._answer = answer

    return refuse


@_bug(Journal, "_looked", "A transaction that was stored after all is written once more.", "doubled")
def stored_unit_written_again(original: Original) -> Original:
    def looked(self: Any, observers: Any) -> None:
        original(self, replace(observers, stored=False) if hasattr(observers, "stored") else observers)

    return looked


@_bug(trimming_room, "first_at", "Trimming takes the event after the last one that has ended.", "went before its end")
def trimmed_one_too_far(original: Original) -> Original:
    def first_at(log: Any, topic: str, partition: int, bounds: tuple[int, int], *at: Any) -> int:
        oldest: int = original(log, topic, partition, bounds, *at)
        return oldest if oldest == bounds[0] else oldest + 1

    return first_at


@_bug(Shard, "_needed", "The journal is trimmed whether or not a snapshot has what it says.", "ended and comes again")
def snapshots_not_asked(_: Original) -> Original:
    return lambda shard: shard._context.journal.next


@_bug(subscription_room, "unreserve", "What a transaction lets go is forgotten.", "not be held")
def let_go_and_forgotten(_: Original) -> Original:
    return lambda dispatch, link, eids: link.reserved.discard(min(eids), max(eids))


@_bug(PartitionedSubscription, "unreserve", "What is let go stays held in all stores but the first.", "not be held")
def let_go_in_the_first_store(original: Original) -> Original:
    return lambda spread, places: None if partition_of(places[0]) else original(spread, places)


@_bug(PartitionedSubscription, "_of", "What is settled in a store is settled in the first one.", "not be held")
def one_store_for_all(_: Original) -> Original:
    return lambda spread, _: spread._stores[0]


@_bug(
    subscription_room,
    "reserve",
    "Outcomes in another order than the events came make ranges that are none.",
    "not be held",
)
def ranges_of_unsorted(_: Original) -> Original:
    def reserve(dispatch: Any, link: Any, eids: list[int]) -> bool:
        runs = [(first, last, 0, first) for first, last in dense_runs(eids)]
        if not remove_all(link.outstanding, runs):
            return False
        for first, last, _, _ in runs:
            link.reserved.add(first, last)
        dispatch.away += len(eids)
        return True

    return reserve


@_bug(Commit, "begin", "A unit whose commit is under way when the process ends is answered before.", "lost")
def done_before_stored(original: Original) -> Original:
    def begin(self: Any) -> None:
        owner, self._owner = self._owner, None
        original(self)
        count = sum(len(posting.keys) for posting in self._postings)
        self._context.answer(Committed(owner, "done", [-1] * count, ""))

    return begin
