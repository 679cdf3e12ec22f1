"""What must be true of a history and of what the realm keeps: one function a promise, each gives its breaches in words.

Shares no code with the gateway or the realm. May import: the standard library, `tests.torture`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.torture.realm_reader import Kept, Place, Store
from tests.torture.story import TERMINAL, Given, Story

SEEN_LATE_MS = 2000  # a link that the gateway gave up is known to its peer at most so much later
Check = Callable[[Story, "Ground"], Iterator[str]]
CHECKS: dict[str, Check] = {}


@dataclass(slots=True)
class Ground:
    """What the realm keeps; and where each attempt stands in it."""

    kept: Kept
    stored: dict[tuple[int, int], list[tuple[Store, int]]]  # sending link and index -> store, EID

    @classmethod
    def of(cls, kept: Kept) -> Ground:
        stored: dict[tuple[int, int], list[tuple[Store, int]]] = defaultdict(list)
        for store, events in kept.events.items():
            for eid, said in events.items():
                if said is not None:
                    stored[said.link, said.nth].append((store, eid))
        return cls(kept, stored)


@dataclass(frozen=True, slots=True)
class Breach:
    promise: str
    words: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.words}"


def breaches(story: Story, kept: Kept) -> list[Breach]:
    """Everything that is not as promised."""
    ground = Ground.of(kept)
    return [Breach(name, words) for name, check in CHECKS.items() for words in check(story, ground)]


def doubled(story: Story, kept: Kept) -> int:
    """Attempts that are stored twice, and may be: a result was unknown meanwhile."""
    stored = Ground.of(kept).stored
    return sum(len(places) > 1 and story.is_doubtful(story.attempts[key]) for key, places in stored.items())


def _check(name: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        CHECKS[name] = check
        return check

    return register


@_check("accepted but lost")
def lost(story: Story, ground: Ground) -> Iterator[str]:
    for (link, index), attempt in story.attempts.items():
        if attempt.outcome == "accepted" and not attempt.txn and (link, index) not in ground.stored:
            yield f"{attempt.node}: number {attempt.number} of peer {attempt.peer}, link {link}, index {index}"


@_check("duplicated")
def duplicated(story: Story, ground: Ground) -> Iterator[str]:
    """At least once means: said twice, stored twice. Said once, stored twice is too much, unless there was doubt."""
    for (link, index), places in ground.stored.items():
        attempt = story.attempts.get((link, index))
        if len(places) > 1 and not (attempt and story.is_doubtful(attempt)):
            yield f"link {link}, index {index} is stored at {places}"


@_check("refused but stored")
def refused(story: Story, ground: Ground) -> Iterator[str]:
    for key, attempt in story.attempts.items():
        if attempt.outcome == "rejected" and not attempt.txn and key in ground.stored:
            yield f"link {key[0]}, index {key[1]} at {ground.stored[key]}"


@_check("stored but never sent")
def strangers(story: Story, ground: Ground) -> Iterator[str]:
    for store, events in ground.kept.events.items():
        for eid, said in events.items():
            attempt = story.attempts.get((said.link, said.nth)) if said else None
            if said is None or attempt is None:
                yield f"{store} EID {eid}"
            elif (attempt.node, attempt.peer, attempt.number) != (store[0], said.peer, said.number):
                yield f"{store} EID {eid} holds {said}, sent was {attempt}"


@_check("out of order")
def order(story: Story, ground: Ground) -> Iterator[str]:
    """What one link sent lies in the order of sending, in each store; links of ours publish either in transactions or
    outside."""
    last: dict[tuple[int, Store], tuple[int, int]] = {}
    for link, index in sorted(ground.stored):
        if (link, index) not in story.attempts:
            continue
        store, eid = ground.stored[link, index][0]  # the first of several
        before = last.get((link, store), (-1, -1))
        if before[1] > eid:
            yield f"link {link}, {store}: index {index} at {eid}, index {before[0]} at {before[1]}"
        last[link, store] = (index, eid)


@_check("in the wrong store")
def misplaced(story: Story, ground: Ground) -> Iterator[str]:
    """A level is a store; else a group is in one store, and so is what one link sends without a group."""
    homes: dict[tuple[str, str | int], Store] = {}
    for key, places in ground.stored.items():
        attempt = story.attempts.get(key)
        if attempt is None:
            continue
        levels = ground.kept.levels.get(attempt.node, 0)
        for store, eid in places:
            if levels:
                right = ground.kept.partitions[store] == level(attempt.priority, levels)
            else:
                right = homes.setdefault((attempt.node, attempt.group or attempt.link), store) == store
            if not right:
                yield f"{store} EID {eid}: {attempt}"


def level(priority: int, levels: int) -> int:
    """0 is the lowest; of fewer than ten, those in the middle are told apart (AMQP 1.0, 3.2.1)."""
    lowest, highest = (5 - (levels + 1) // 2, 4 + levels // 2) if levels < 10 else (0, levels - 1)
    return min(max(priority, lowest), highest) - lowest


@_check("given but not stored")
def unstored(story: Story, ground: Ground) -> Iterator[str]:
    for place, deliveries in story.given.items():
        events = ground.kept.events.get(place[0], {})
        for given in deliveries:
            if events.get(given.eid) != given.said:
                yield f"{place} EID {given.eid} brought {given.said}, stored is {events.get(given.eid)}"
    for place, eid in story.damaged:
        yield f"{place} EID {eid} brought what nobody sent"


@_check("acknowledged and given again")
def given_again(story: Story, ground: Ground) -> Iterator[str]:
    for place, deliveries in story.given.items():
        ended = {each.eid: each.at for each in reversed(story.answered[place]) if each.outcome in TERMINAL}
        for given in deliveries:
            if given.at > ended.get(given.eid, given.at):
                yield f"{place} EID {given.eid} came on link {given.link} after its end was confirmed"


@_check("given twice at a time")
def given_twice(story: Story, ground: Ground) -> Iterator[str]:
    for place, deliveries in story.given.items():
        if not place[1]:
            continue  # everybody has a plain subscription's events
        returned: dict[tuple[int, int], int] = {
            (each.link, each.eid): each.at for each in story.said[place] if each.outcome not in TERMINAL
        }
        holders: dict[int, tuple[int, int]] = {}  # eid -> link, row
        for given in deliveries:
            link, at = holders.get(given.eid, (0, 0))
            if link and story.links[link].ended_ms > given.ms + SEEN_LATE_MS:
                back = returned.get((link, given.eid), -1)
                if not at < back < given.at and not _returned_between(story, place, link, given.eid, at, given.at):
                    yield f"{place} EID {given.eid} came on link {given.link} while link {link} had it"
            holders[given.eid] = (given.link, given.at)


def _returned_between(story: Story, place: Place, link: int, eid: int, first: int, last: int) -> bool:
    """The slow way, for an event that came back more than once."""
    return any(
        each.link == link and each.eid == eid and first < each.at < last and each.outcome not in TERMINAL
        for each in story.said[place]
    )


@_check("group divided")
def divided(story: Story, ground: Ground) -> Iterator[str]:
    """All of a group in a store go to one link of a queue or durable, for as long as that lives."""
    for place, deliveries in story.given.items():
        keepers: dict[str, int] = {}
        for given in deliveries:
            group = _group(story, given)
            if not group or not place[1]:
                continue
            keeper = keepers.get(group, given.link)
            if keeper != given.link and story.links[keeper].ended_ms > given.ms + SEEN_LATE_MS:
                yield f"{place} EID {given.eid} of {group} came on link {given.link}; link {keeper} keeps that"
            keepers[group] = given.link


def _group(story: Story, given: Given) -> str:
    attempt = story.attempts.get((given.said.link, given.said.nth))
    return attempt.group if attempt is not None else ""


@_check("acknowledged but not committed")
def uncommitted(story: Story, ground: Ground) -> Iterator[str]:
    for place, answers in story.answered.items():
        terminal = ground.kept.terminal.get(place, set())
        for each in answers:
            if each.outcome in TERMINAL and each.eid not in terminal:
                yield f"{place} EID {each.eid} on link {each.link}: {each.outcome}"


@_check("committed but not acknowledged")
def unasked(story: Story, ground: Ground) -> Iterator[str]:
    for place, terminal in ground.kept.terminal.items():
        asked = {
            each.eid
            for each in story.said[place]
            if each.outcome in TERMINAL and not (each.txn and story.txns[each.txn].must_be is False)
        }
        events = ground.kept.events.get(place[0], {})
        for eid in sorted(terminal - asked):
            if eid in events:
                yield f"{place} EID {eid} ended, and no consumer said so"


@_check("never given to the end")
def left(story: Story, ground: Ground) -> Iterator[str]:
    for store in ground.kept.partitions:
        for durable in {each.durable for each in story.links.values() if each.node == store[0] and each.durable}:
            if (store, durable) not in ground.kept.starts:
                yield f"{store, durable}: nobody knows what it has to be given"
    for place, eids in ground.kept.left().items():
        for eid in eids:
            yield f"{place} EID {eid}: {ground.kept.events[place[0]][eid]}"


@_check("deleted before its end")
def trimmed(story: Story, ground: Ground) -> Iterator[str]:
    for store, eids in ground.kept.trimmed.items():
        for place, start in ground.kept.starts.items():
            if place[0] == store:
                for eid in sorted(eids - ground.kept.terminal.get(place, set())):
                    if eid >= start:
                        yield f"{place} EID {eid}"


@_check("attempts miscounted")
def miscounted(story: Story, ground: Ground) -> Iterator[str]:
    """A delivery-count lies between the failures that were confirmed and those that were said; or that may have been,
    since each link that was cut off had one event at most once when it broke, whether or not its peer had seen it."""
    for place, deliveries in story.given.items():
        said, sure = _failures(story.said[place]), _failures(story.answered[place])
        if not place[1]:
            continue
        ended = _ended(story, place)
        for given in deliveries:
            most = sum(at < given.at for at in said[given.eid])
            most += bisect_right(ended, given.ms + SEEN_LATE_MS)
            least = sum(at < given.at for at in sure[given.eid])
            if not least <= given.count <= most:
                yield f"{place} EID {given.eid} says {given.count}; {least} to {most} failed"


def _ended(story: Story, place: Place) -> list[float]:
    """When the links ended that were given events of there, in order. None of them was closed by its peer."""
    links = (link for link in story.links.values() if (link.node, link.durable) == (place[0][0], place[1]))
    return sorted(link.ended_ms for link in links)


def _failures(settles: list) -> dict[int, list[int]]:  # type: ignore[type-arg]
    found: dict[int, list[int]] = defaultdict(list)
    for each in settles:
        if each.outcome == "modified":
            found[each.eid].append(each.at)
    return found


@_check("new ones out of order")
def given_order(story: Story, ground: Ground) -> Iterator[str]:
    """On one link, what is given for the first time comes in the order of the store (where a group waited for somebody
    else, only within it); a plain one misses nothing."""
    for place, deliveries in story.given.items():
        events = sorted(ground.kept.events.get(place[0], {})) if not place[1] else []
        index = {eid: at for at, eid in enumerate(events)}
        last: dict[tuple[int, str], int] = {}
        for given in deliveries:
            if given.again or given.count:
                continue
            lane = given.link, _group(story, given) if place[1] else ""
            before = last.get(lane)
            if before is not None and given.eid <= before:
                yield f"{place} link {given.link}: EID {given.eid} after {before}"
            elif before is not None and index and index.get(given.eid, 0) != index.get(before, -1) + 1:
                yield f"{place} link {given.link}: EID {given.eid} right after {before}, and there are some between"
            last[lane] = given.eid


@_check("torn transaction")
def torn(story: Story, ground: Ground) -> Iterator[str]:
    for number, txn in story.txns.items():
        there = [key in ground.stored for key in txn.attempts]
        there += [
            eid in ground.kept.terminal.get(place, set())
            for place, eid in txn.retired
            if not any(each.eid == eid and each.txn != number for each in story.said[place])
        ]
        if txn.must_be is not False and any(there) and not all(there):
            yield f"transaction {number}: {sum(there)} of {len(there)} parts are kept"
        elif txn.must_be and not all(there):
            yield f"transaction {number} was committed and is not there"


@_check("aborted seen")
def aborted(story: Story, ground: Ground) -> Iterator[str]:
    for number, txn in story.txns.items():
        if txn.must_be is False:
            for key in txn.attempts:
                if key in ground.stored:
                    yield f"transaction {number}: {ground.stored[key]}"
