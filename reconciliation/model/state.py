"""What a reconciliation leaves for the next one: how far it has read each partition, and which landed records count.

Outcome records, journal and events are landed once, one *link* for each reconciliation. What a plan says of the next
one: where it reads on in each partition, or why the evidence cannot be continued and everything that is kept is read
anew. Pure: nothing is read or written here. Errors: `SettingsError` for a state that is not of this realm.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import Any

from reconciliation.model.ranges import Extent, Kind, Range, kind_of
from reconciliation.model.settings import SettingsError
from reconciliation.model.window import readable

VERSION = 1
CHAINED: tuple[Kind, ...] = ("outcomes", "journal", "events")
"""Only their new records are read. The rest is small, and read as a whole each time."""
EVIDENCE: tuple[Kind, ...] = ("outcomes", "journal")
"""Records that the realm trims by their age."""
_IDENTITY: tuple[Kind, ...] = ("realm", "outcomes", "journal")
_SLACK = 1
"""The embedded realm skips one offset behind each batch: nothing was there."""
Partition = tuple[str, int]
"""Topic, number."""


@dataclass(frozen=True, slots=True)
class Link:
    """What one reconciliation has landed, and the ranges of it that count. `merges`: how often its records were
    made one with those of other links. `files`: a digest of the names of its files (`reconciliation.read.links`);
    empty: an earlier release wrote it, and kept none."""

    name: str
    ranges: tuple[Range, ...]
    merges: int = 0
    files: str = ""

    @property
    def records_max(self) -> int:
        return sum(span.end - span.first for span in self.ranges)


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a partition was read. `last`: the offset of the last record there, `mark`: a hash of it (None: none)."""

    topic: str
    topic_id: str
    partition: int
    end: int
    last: int | None
    mark: int | None


@dataclass(frozen=True, slots=True)
class Remark:
    """What was found wrong with the evidence when it was continued, in microseconds since 1970. Each later report has
    it again: the books begin behind it."""

    at: int
    words: str


@dataclass(frozen=True, slots=True)
class State:
    """`topics`: ids of the topics by which a realm is known. `count`: reconciliations so far; `at`: when the last one
    was, in microseconds since 1970."""

    prefix: str
    topics: Mapping[str, str]
    reached: tuple[Reached, ...]
    links: tuple[Link, ...]
    remarks: tuple[Remark, ...]
    count: int
    at: int

    def as_json(self) -> bytes:
        body = {"v": VERSION, **asdict(self)}
        return json.dumps({**body, "digest": _digest(body)}, indent=1).encode()

    def end_of(self, topic: str) -> int:
        """How far partition 0 of a topic was read."""
        return next((reach.end for reach in self.reached if (reach.topic, reach.partition) == (topic, 0)), 0)


def _digest(body: Mapping[str, Any]) -> str:
    return blake2b(json.dumps(body).encode(), digest_size=16).hexdigest()


def state_of(content: bytes, place: object) -> State:
    """`place`: where it is, for words. The states of earlier releases have no digest."""
    try:
        body = json.loads(content)
        digest = body.pop("digest", None)
        if body["v"] != VERSION:
            raise SettingsError(f"the state in {place} is of another release: name another directory by --state")
        if digest not in (None, _digest(body)):
            raise SettingsError(f"the state in {place} was changed after it was written: name another directory")
        del body["v"]
        return State(
            **{
                **body,
                "reached": tuple(Reached(**reach) for reach in body["reached"]),
                "links": tuple(
                    Link(**{**link, "ranges": tuple(Range(**span) for span in link["ranges"])})
                    for link in body["links"]
                ),
                "remarks": tuple(Remark(**remark) for remark in body["remarks"]),
            }
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SettingsError(f"the state in {place} cannot be read ({error}): name another directory") from error


def identity_of(extent: Extent, prefix: str) -> dict[str, str]:
    names = [f"{prefix}.{kind}" for kind in _IDENTITY]
    return {name: extent.topics[name] for name in names if extent.topics.get(name)}


def check_realm(state: State, extent: Extent, prefix: str, place: object) -> None:
    """One topic that was made again is a finding; if all are others, it is another realm."""
    there = identity_of(extent, prefix)
    known = there.keys() & state.topics.keys()
    if state.prefix != prefix or (known and all(there[name] != state.topics[name] for name in known)):
        what = f"of another realm (prefix {state.prefix!r}), or of one that was made anew since"
        raise SettingsError(f"the state in {place} is {what}: name another directory by --state")


@dataclass(frozen=True, slots=True)
class Start:
    """Where a partition is read from, and from where on its records count. `mark`: the first record has to have it
    (None: nothing is known of it)."""

    read: int
    counts: int
    mark: int | None = None
    continued: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """`starts`: of all partitions that are read as a chain. `broken`: why the evidence cannot be continued."""

    starts: Mapping[Partition, Start]
    broken: tuple[str, ...] = ()

    def covers(self, other: Plan) -> bool:
        """What was read by this one is all that the other one needs."""
        of_new = Start(0, 0)
        return all(self.starts.get(place, of_new).read <= start.read for place, start in other.starts.items())


def plan(state: State | None, extent: Extent, prefix: str, changed: Collection[Partition] = ()) -> Plan:
    """`changed`: partitions whose last known record is another one now, or gone."""
    ranges = [span for span in extent.ranges if kind_of(prefix, span.topic) in CHAINED]
    known = {} if state is None else {(reach.topic, reach.partition): reach for reach in state.reached}
    evidence = {f"{prefix}.{kind}" for kind in EVIDENCE}
    broken = tuple(
        why
        for reach in known.values()
        if reach.topic in evidence and (why := _broken(reach, extent, (reach.topic, reach.partition) in changed))
    )
    starts = {}
    for span in ranges:
        place = span.topic, span.partition
        before = None if broken or place in changed else known.get(place)
        starts[place] = _start(span, before, extent.topics.get(span.topic))
    return Plan(starts, broken)


def _start(now: Range, before: Reached | None, topic_id: str | None) -> Start:
    if before is None or before.topic_id != topic_id or now.end < before.end:
        return Start(now.first, now.first)
    if before.last is not None and before.last >= now.first:
        return Start(before.last, before.end, before.mark, continued=True)
    counts = max(before.end, now.first)
    return Start(counts, counts, continued=True)


def _broken(before: Reached, extent: Extent, changed: bool) -> str:
    """Empty: it can be read on."""
    now = extent.range_of(before.topic, before.partition)
    if now is None:
        return ""  # it cannot be read: that has a finding of its own
    if extent.topics.get(before.topic) != before.topic_id:
        return f"{before.topic} is another topic than the one that was read up to offset {before.end:,}"
    if now.end < before.end:
        return f"{before.topic} ends at offset {now.end:,}, and was read up to {before.end:,}: it became shorter"
    if now.first > before.end + _SLACK:
        return (
            f"{before.topic} was trimmed up to offset {now.first:,}, and read up to {before.end:,}: no reconciliation "
            "has judged what was between. Reconcile more often than limits.evidence_s"
        )
    if changed:
        return f"{before.topic} has another record at offset {before.last:,} than was read there: it was replaced"
    return ""


@dataclass(frozen=True, slots=True)
class Seen:
    """Of a partition, as it was landed: its first and its last record, by offset and hash."""

    first: int
    first_mark: int
    last: int
    last_mark: int


def changed_of(reads: Plan, seen: Mapping[Partition, Seen]) -> set[Partition]:
    """Partitions that do not begin with the record that is known."""
    return {
        place
        for place, start in reads.starts.items()
        if start.mark is not None
        and (place not in seen or (seen[place].first, seen[place].first_mark) != (start.read, start.mark))
    }


def next_state(
    state: State | None,
    extent: Extent,
    prefix: str,
    reads: Plan,
    seen: Mapping[Partition, Seen],
    link: str,
    now_us: int,
    files: str = "",
) -> State:
    """Once the records that `reads` names are landed as `link`, in `files`. What is not readable now stays as it is
    known."""
    kept = (
        [end for end in state.reached if _stays(end, extent, reads)] if state is not None and not reads.broken else []
    )
    remarks = () if state is None else state.remarks
    return State(
        prefix,
        identity_of(extent, prefix),
        (*kept, *_reached(state, extent, reads, seen)),
        (*_links(state, kept, reads), Link(link, tuple(_counting(extent, reads)), files=files)),
        (*remarks, *(Remark(now_us, f"{why}; what was read before does not count") for why in reads.broken)),
        1 if state is None else state.count + 1,
        now_us,
    )


def _stays(reach: Reached, extent: Extent, reads: Plan) -> bool:
    """It is not read this time, and is there still, as far as that is known."""
    if (reach.topic, reach.partition) in reads.starts:
        return False
    return extent.topics.get(reach.topic, reach.topic_id) == reach.topic_id and (
        reach.topic in extent.topics or extent.unread_of(reach.topic, reach.partition) is not None
    )


def _reached(state: State | None, extent: Extent, reads: Plan, seen: Mapping[Partition, Seen]) -> Iterator[Reached]:
    known = {} if state is None else {(reach.topic, reach.partition): reach for reach in state.reached}
    for place, start in reads.starts.items():
        now, before = extent.range_of(*place), known.get(place) if start.continued else None
        assert now is not None
        last, mark = (before.last, before.mark) if before is not None else (None, None)
        if place in seen:
            last, mark = seen[place].last, seen[place].last_mark
        yield Reached(now.topic, extent.topics.get(now.topic, ""), now.partition, now.end, last, mark)


def _links(state: State | None, kept: Collection[Reached], reads: Plan) -> Iterator[Link]:
    """The earlier ones, without what is read anew or is no more."""
    stays = {(reach.topic, reach.partition) for reach in kept}
    stays |= {place for place, start in reads.starts.items() if start.continued}
    for link in () if state is None else state.links:
        ranges = tuple(span for span in link.ranges if (span.topic, span.partition) in stays)
        if ranges:
            yield replace(link, ranges=ranges)


def _counting(extent: Extent, reads: Plan) -> Iterator[Range]:
    for span in extent.ranges:
        start = reads.starts.get((span.topic, span.partition))
        if start is not None and start.counts < span.end:
            yield replace(span, first=start.counts)


def judged_extent(extent: Extent, prefix: str, links: Collection[Link]) -> Extent:
    """With the evidence from where the links have it; of events counts what the stores still have."""
    firsts: dict[Partition, int] = {}
    for span in (stretch for link in links for stretch in link.ranges if kind_of(prefix, stretch.topic) in EVIDENCE):
        place = span.topic, span.partition
        firsts[place] = min(span.first, firsts.get(place, span.first))
    ranges = (replace(span, first=firsts.get((span.topic, span.partition), span.first)) for span in extent.ranges)
    return replace(extent, ranges=tuple(ranges))


def words_of(before: State | None, after: State | None, why_not: str) -> str:
    """One line of the report. `after` None: the state was left as it was."""
    if after is None:
        return (
            f"State: not continued and left as it was, because {why_not}; this report is of what the realm still keeps."
        )
    if before is None:
        return "State: begun; the next reconciliation continues from this one."
    if len(after.remarks) > len(before.remarks):
        return "State: begun anew, because the evidence could not be continued (Q1)."
    read = " and ".join(f"{kind} up to offset {before.end_of(f'{before.prefix}.{kind}'):,}" for kind in EVIDENCE)
    number = f"reconciliation number {after.count} of this state"
    return f"State: {number}, continued from that of {readable(before.at)}, which had read {read}."
