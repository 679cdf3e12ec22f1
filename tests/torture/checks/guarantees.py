"""What must be true of a history and of what the realm keeps: one function a guarantee. Each gives its violations in
words.

Shares no code with the gateway or the realm.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.torture.checks.observed import TERMINAL, Given, Observed
from tests.torture.checks.realm_reader import Kept, Place, Store

SEEN_LATE_MS = 2000  # a link that the gateway gave up is known to its peer at most so much later
Check = Callable[[Observed, "RealmState"], Iterator[str]]
CHECKS: dict[str, Check] = {}


@dataclass(slots=True)
class RealmState:
    """What the realm keeps; and where each attempt stands in it."""

    kept: Kept
    stored: dict[tuple[int, int], list[tuple[Store, int]]]  # sending link and index -> store, EID

    @classmethod
    def of(cls, kept: Kept) -> RealmState:
        stored: dict[tuple[int, int], list[tuple[Store, int]]] = defaultdict(list)
        for store, events in kept.events.items():
            for eid, body in events.items():
                if body is not None:
                    stored[body.link, body.nth].append((store, eid))
        return cls(kept, stored)


@dataclass(frozen=True, slots=True)
class Violation:
    guarantee: str
    words: str

    def __str__(self) -> str:
        return f"{self.guarantee}: {self.words}"


def violations(observed: Observed, kept: Kept) -> list[Violation]:
    """Everything that is not as guaranteed."""
    state = RealmState.of(kept)
    return [Violation(name, words) for name, check in CHECKS.items() for words in check(observed, state)]


def doubled(observed: Observed, kept: Kept) -> int:
    """Attempts that are stored twice, and may be: a result was unknown meanwhile."""
    stored = RealmState.of(kept).stored
    return sum(len(places) > 1 and observed.is_doubtful(observed.attempts[key]) for key, places in stored.items())


def _check(name: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        CHECKS[name] = check
        return check

    return register


@_check("accepted but lost")
def lost(observed: Observed, state: RealmState) -> Iterator[str]:
    for (link, index), attempt in observed.attempts.items():
        if attempt.outcome == "accepted" and not attempt.txn and (link, index) not in state.stored:
            yield f"{attempt.node}: number {attempt.number} of peer {attempt.peer}, link {link}, index {index}"


@_check("duplicated")
def duplicated(observed: Observed, state: RealmState) -> Iterator[str]:
    """At least once means: said twice, stored twice. Said once, stored twice is too much, unless there was doubt."""
    for (link, index), places in state.stored.items():
        attempt = observed.attempts.get((link, index))
        if len(places) > 1 and not (attempt and observed.is_doubtful(attempt)):
            yield f"link {link}, index {index} is stored at {places}"


@_check("refused but stored")
def refused(observed: Observed, state: RealmState) -> Iterator[str]:
    for key, attempt in observed.attempts.items():
        if attempt.outcome == "rejected" and not attempt.txn and key in state.stored:
            yield f"link {key[0]}, index {key[1]} at {state.stored[key]}"


@_check("stored but never sent")
def strangers(observed: Observed, state: RealmState) -> Iterator[str]:
    for store, events in state.kept.events.items():
        for eid, body in events.items():
            attempt = observed.attempts.get((body.link, body.nth)) if body else None
            if body is None or attempt is None:
                yield f"{store} EID {eid}"
            elif (attempt.node, attempt.peer, attempt.number) != (store[0], body.peer, body.number):
                yield f"{store} EID {eid} holds {body}, sent was {attempt}"


@_check("out of order")
def order(observed: Observed, state: RealmState) -> Iterator[str]:
    """What one link sent lies in the order of sending, in each store; links of ours publish either in transactions or
    outside."""
    last: dict[tuple[int, Store], tuple[int, int]] = {}
    for link, index in sorted(state.stored):
        if (link, index) not in observed.attempts:
            continue
        store, eid = state.stored[link, index][0]  # the first of several
        before = last.get((link, store), (-1, -1))
        if before[1] > eid:
            yield f"link {link}, {store}: index {index} at {eid}, index {before[0]} at {before[1]}"
        last[link, store] = (index, eid)


@_check("in the wrong store")
def misplaced(observed: Observed, state: RealmState) -> Iterator[str]:
    """A level is a store; else a group is in one store, and so is what one link sends without a group."""
    homes: dict[tuple[str, str | int], Store] = {}
    for key, places in state.stored.items():
        attempt = observed.attempts.get(key)
        if attempt is None:
            continue
        levels = state.kept.levels.get(attempt.node, 0)
        for store, eid in places:
            if levels:
                right = state.kept.partitions[store] == level(attempt.priority, levels)
            else:
                right = homes.setdefault((attempt.node, attempt.group or attempt.link), store) == store
            if not right:
                yield f"{store} EID {eid}: {attempt}"


def level(priority: int, levels: int) -> int:
    """0 is the lowest; of fewer than ten, those in the middle are told apart (AMQP 1.0, 3.2.1)."""
    lowest, highest = (5 - (levels + 1) // 2, 4 + levels // 2) if levels < 10 else (0, levels - 1)
    return min(max(priority, lowest), highest) - lowest


@_check("given but not stored")
def unstored(observed: Observed, state: RealmState) -> Iterator[str]:
    for place, deliveries in observed.given.items():
        events = state.kept.events.get(place[0], {})
        for given in deliveries:
            if events.get(given.eid) != given.said:
                yield f"{place} EID {given.eid} brought {given.said}, stored is {events.get(given.eid)}"
    for place, eid in observed.damaged:
        yield f"{place} EID {eid} brought what no one sent"


@_check("acknowledged and given again")
def given_again(observed: Observed, state: RealmState) -> Iterator[str]:
    for place, deliveries in observed.given.items():
        ended = {answer.eid: answer.at for answer in reversed(observed.answered[place]) if answer.outcome in TERMINAL}
        for given in deliveries:
            if given.at > ended.get(given.eid, given.at):
                yield f"{place} EID {given.eid} came on link {given.link} after its end was confirmed"


@_check("given twice at a time")
def given_twice(observed: Observed, state: RealmState) -> Iterator[str]:
    for place, deliveries in observed.given.items():
        if not place[1]:
            continue  # everybody has a plain subscription's events
        returned: dict[tuple[int, int], int] = {
            (settle.link, settle.eid): settle.at for settle in observed.said[place] if settle.outcome not in TERMINAL
        }
        holders: dict[int, tuple[int, int]] = {}  # eid -> link, row
        for given in deliveries:
            link, at = holders.get(given.eid, (0, 0))
            if link and observed.links[link].ended_ms > observed.seen_by_ms(given.ms, SEEN_LATE_MS):
                back = returned.get((link, given.eid), -1)
                if not at < back < given.at and not _returned_between(observed, place, link, given.eid, at, given.at):
                    yield f"{place} EID {given.eid} came on link {given.link} while link {link} had it"
            holders[given.eid] = (given.link, given.at)


def _returned_between(observed: Observed, place: Place, link: int, eid: int, first: int, last: int) -> bool:
    """The slow way, for an event that came back more than once."""
    return any(
        settle.link == link and settle.eid == eid and first < settle.at < last and settle.outcome not in TERMINAL
        for settle in observed.said[place]
    )


@_check("group divided")
def divided(observed: Observed, state: RealmState) -> Iterator[str]:
    """All of a group in a store go to one link of a queue or durable, for as long as that lives."""
    for place, deliveries in observed.given.items():
        keepers: dict[str, int] = {}
        for given in deliveries:
            group = _group(observed, given)
            if not group or not place[1]:
                continue
            keeper = keepers.get(group, given.link)
            if keeper != given.link and observed.links[keeper].ended_ms > observed.seen_by_ms(given.ms, SEEN_LATE_MS):
                yield f"{place} EID {given.eid} of {group} came on link {given.link}; link {keeper} keeps that"
            keepers[group] = given.link


def _group(observed: Observed, given: Given) -> str:
    attempt = observed.attempts.get((given.said.link, given.said.nth))
    return attempt.group if attempt is not None else ""


@_check("acknowledged but not committed")
def uncommitted(observed: Observed, state: RealmState) -> Iterator[str]:
    for place, answers in observed.answered.items():
        terminal = state.kept.terminal.get(place, set())
        for answer in answers:
            if answer.outcome in TERMINAL and answer.eid not in terminal:
                yield f"{place} EID {answer.eid} on link {answer.link}: {answer.outcome}"


@_check("committed but not acknowledged")
def unasked(observed: Observed, state: RealmState) -> Iterator[str]:
    for place, terminal in state.kept.terminal.items():
        requested = {
            settle.eid
            for settle in observed.said[place]
            if settle.outcome in TERMINAL and not (settle.txn and observed.txns[settle.txn].must_be is False)
        }
        events = state.kept.events.get(place[0], {})
        for eid in sorted(terminal - requested):
            if eid in events:
                yield f"{place} EID {eid} ended, and no consumer said so"


@_check("never given to the end")
def left(observed: Observed, state: RealmState) -> Iterator[str]:
    for store in state.kept.partitions:
        for durable in {link.durable for link in observed.links.values() if link.node == store[0] and link.durable}:
            if (store, durable) not in state.kept.starts:
                yield f"{store, durable}: no one knows what it has to be given"
    for place, eids in state.kept.left().items():
        for eid in eids:
            yield f"{place} EID {eid}: {state.kept.events[place[0]][eid]}"


@_check("deleted before its end")
def trimmed(observed: Observed, state: RealmState) -> Iterator[str]:
    for store, eids in state.kept.trimmed.items():
        for place, start in state.kept.starts.items():
            if place[0] == store:
                for eid in sorted(eids - state.kept.terminal.get(place, set())):
                    if eid >= start:
                        yield f"{place} EID {eid}"


@_check("attempts miscounted")
def miscounted(observed: Observed, state: RealmState) -> Iterator[str]:
    """A delivery-count lies between the failures that were confirmed and those that were said; or that may have been,
    since each link that was cut off had one event at most once when it broke, whether or not its peer had seen it."""
    for place, deliveries in observed.given.items():
        reports, sure = _failures(observed.said[place]), _failures(observed.answered[place])
        if not place[1]:
            continue
        ended = _ended(observed, place)
        for given in deliveries:
            most = sum(at < given.at for at in reports[given.eid])
            most += bisect_right(ended, observed.seen_by_ms(given.ms, SEEN_LATE_MS))
            least = sum(at < given.at for at in sure[given.eid])
            if not least <= given.count <= most:
                yield f"{place} EID {given.eid} says {given.count}; {least} to {most} failed"


def _ended(observed: Observed, place: Place) -> list[float]:
    """When the links ended that were given events of there, in order. None of them was closed by its peer."""
    links = (link for link in observed.links.values() if (link.node, link.durable) == (place[0][0], place[1]))
    return sorted(link.ended_ms for link in links)


def _failures(settles: list) -> dict[int, list[int]]:  # type: ignore[type-arg]
    failures: dict[int, list[int]] = defaultdict(list)
    for settle in settles:
        if settle.outcome == "modified":
            failures[settle.eid].append(settle.at)
    return failures


@_check("new ones out of order")
def given_order(observed: Observed, state: RealmState) -> Iterator[str]:
    """On one link, what is given for the first time comes in the order of the store (where a group waited for someone
    else, only within it); a plain one misses nothing."""
    for place, deliveries in observed.given.items():
        events = sorted(state.kept.events.get(place[0], {})) if not place[1] else []
        index = {eid: at for at, eid in enumerate(events)}
        last: dict[tuple[int, str], int] = {}
        for given in deliveries:
            if given.again or given.count:
                continue
            lane = given.link, _group(observed, given) if place[1] else ""
            before = last.get(lane)
            if before is not None and given.eid <= before:
                yield f"{place} link {given.link}: EID {given.eid} after {before}"
            elif before is not None and index and index.get(given.eid, 0) != index.get(before, -1) + 1:
                yield f"{place} link {given.link}: EID {given.eid} right after {before}, and there are some between"
            last[lane] = given.eid


@_check("torn transaction")
def torn(observed: Observed, state: RealmState) -> Iterator[str]:
    settled_in: dict[tuple[Place, int], set[int | None]] = {}
    for place, settles in observed.said.items():
        for settle in settles:
            settled_in.setdefault((place, settle.eid), set()).add(settle.txn)
    for number, txn in observed.txns.items():
        there = [key in state.stored for key in txn.attempts]
        there += [
            eid in state.kept.terminal.get(place, set())
            for place, eid in txn.retired
            if settled_in.get((place, eid), set()) <= {number}
        ]
        if txn.must_be is not False and any(there) and not all(there):
            yield f"transaction {number}: {sum(there)} of {len(there)} parts are kept"
        elif txn.must_be and not all(there):
            yield f"transaction {number} was committed and is not there"


@_check("aborted seen")
def aborted(observed: Observed, state: RealmState) -> Iterator[str]:
    for number, txn in observed.txns.items():
        if txn.must_be is False:
            for key in txn.attempts:
                if key in state.stored:
                    yield f"transaction {number}: {state.stored[key]}"
