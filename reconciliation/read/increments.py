"""Landing in increments: a reconciliation continues from what earlier ones have read, in a directory of its own.

Layout: DIRECTORY/links/link=NAME/kind=KIND/*.parquet with extent.json beside, and DIRECTORY/state-NUMBER.json, of which
the highest number is in force: it names the links that count. It is written last of all, and never over another one
(`Increment.keep`), so a reconciliation that ends before leaves the earlier state in force. Each one lands in a link of
its own, and nothing of a link is removed before a state is in force that does not name it: so of two at once the first
to end is right, and the other one sees that it is not. Each partition is read from its last known record on, which has
to be the same still: so a store that became shorter and grew again is seen. Many small links become one
(`reconciliation.read.merging`), which has no extent.json. Errors: `SettingsError`, `SetupError`, `SourceError`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import uuid4

from pyspark.sql import SparkSession

from reconciliation.model.errors import SetupError
from reconciliation.model.folder import Folder
from reconciliation.model.ranges import KINDS, TORN, Extent
from reconciliation.model.settings import Realm, SettingsError
from reconciliation.model.state import (
    CHAINED,
    EVIDENCE,
    Partition,
    Plan,
    Seen,
    State,
    changed_of,
    check_realm,
    judged_extent,
    next_state,
    plan,
    state_of,
    words_of,
)
from reconciliation.read import landing, merging
from reconciliation.read.export import Note
from reconciliation.read.first_and_last import first_and_last
from reconciliation.read.landing import COMPLETE, Chain, Landed
from reconciliation.read.links import files_of

_STATE = re.compile(r"state-[0-9]{6,}\.json")
_HALF = re.compile(r"\.state-[0-9]{6,}\.json\..*")
"""What one that was killed left of its state."""
_LINKS, _LINK = "links", "link="
_UNREAD = "{} cannot be read"
_TORN = "some records cannot be decoded"


@dataclass(frozen=True, slots=True)
class Increment:
    """What is to be judged. `directory`: of the states; None: there is none, and all else says nothing. `link`: what it
    has landed there. `before`: the state it continues from; None: it is the first. `after`: the state that is left once
    it is judged; None: the earlier one stays."""

    landed: Landed
    directory: Folder | None = None
    link: str = ""
    before: State | None = None
    after: State | None = None

    def check(self) -> None:
        """Raises SetupError where another reconciliation has continued meanwhile: what is judged may be removed."""
        if self.directory is not None and newest(self.directory) != _file_of(self.before):
            raise _continued(self.directory)

    def keep(self) -> None:
        """The next reconciliation continues from here. Raises SetupError as `check` does."""
        if self.directory is None:
            return
        self.check()
        if self.after is None:
            (self.directory / _LINKS).remove(f"{_LINK}{self.link}")
        elif self.directory.create(_file_of(self.after), self.after.as_json()):
            _tidy(self.directory, self.after)
        else:
            raise _continued(self.directory)


def newest(directory: Folder) -> str:
    """The file of the state that is in force; empty: there is none."""
    return max(filter(_STATE.fullmatch, directory.names()), key=lambda name: (len(name), name), default="")


def _file_of(state: State | None) -> str:
    return "" if state is None else f"state-{state.count:06d}.json"


def _continued(directory: Folder) -> SetupError:
    return SetupError(f"another reconciliation has continued from {directory} meanwhile: run again")


def _tidy(directory: Folder, state: State) -> None:
    """Remove what `state`, which is in force, does not name, and what is read as a whole each time. What cannot be
    removed, since another one writes there, is removed by a later one."""
    links, names = directory / _LINKS, {f"{_LINK}{link.name}" for link in state.links}
    states = [name for name in directory.names() if _STATE.fullmatch(name) or _HALF.fullmatch(name)]
    gone = [(directory, name) for name in states if name != _file_of(state)]
    gone += [(links, name) for name in links.names() if name.startswith(_LINK) and name not in names]
    gone += [(links / f"{_LINK}{state.links[-1].name}", f"kind={kind}") for kind in KINDS if kind not in CHAINED]
    for folder, name in gone:
        with suppress(OSError, SetupError):
            folder.remove(name)


def land(
    realm: Realm, extent: Extent, spark: SparkSession, directory: Folder, now_us: int, note: Note = str
) -> Increment:
    """Make the realm, as it was when `extent` was asked for or later, available: new records are read, those that were
    read before are there. `now_us`: the time, in microseconds since 1970."""
    (directory / _LINKS).make()
    before = in_force(realm, extent, directory)
    name = f"{1 if before is None else before.count + 1:06d}-{uuid4().hex[:8]}"
    links, own = directory / _LINKS, directory / _LINKS / f"{_LINK}{name}"
    topics = (f"{realm.prefix}.{kind}" for kind in EVIDENCE)
    hindered = next((topic for topic in topics if extent.range_of(topic) is None), None)
    if hindered is not None:
        landed = _whole(realm, extent, spark, own, before, note, _UNREAD.format(hindered))
        return Increment(landed, directory, name, before)
    extent, reads, seen = _read(realm, extent, spark, own, before, note)
    own.write(COMPLETE, json.dumps(extent.as_json(), indent=1).encode())
    state = next_state(before, extent, realm.prefix, reads, seen, name, now_us, files_of(links, name))
    torn = any(gap.why == TORN for gap in extent.unread)  # a backup may bring those records back: they are read again
    if not torn:
        state = merging.merged(spark, links, state, realm.prefix)
    after = None if torn else state
    landed = Landed(
        own,
        judged_extent(extent, realm.prefix, state.links),
        Chain(links, realm.prefix, state.links),
        state.remarks,
        words_of(before, after, _TORN),
    )
    return Increment(landed, directory, name, before, after)


def in_force(realm: Realm, extent: Extent, directory: Folder) -> State | None:
    """The state to continue from. Raises SettingsError where it is not this realm's, or records of it are gone."""
    content = directory.read(name) if (name := newest(directory)) else None
    if content is None:
        return None
    state = state_of(content, directory)
    check_realm(state, extent, realm.prefix, directory)
    there = (directory / _LINKS).names()
    if gone := [name for link in state.links if (name := f"{_LINK}{link.name}") not in there]:
        raise SettingsError(f"{directory} has no {_LINKS}/{gone[0]} any more, which its state names: name another one")
    for link in state.links:
        if link.files and files_of(directory / _LINKS, link.name) != link.files:
            where = f"{directory}/{_LINKS}/{_LINK}{link.name}"
            raise SettingsError(f"{where} has not the files any more that its state names: name another directory")
    return state


def _whole(
    realm: Realm, extent: Extent, spark: SparkSession, own: Folder, before: State | None, note: Note, why: str
) -> Landed:
    """This time it cannot be continued."""
    own.make()
    landed = landing.land(realm, extent, spark, own, note=note)
    return replace(landed, remarks=before.remarks if before is not None else (), said=words_of(before, None, why))


def _read(
    realm: Realm, extent: Extent, spark: SparkSession, own: Folder, before: State | None, note: Note
) -> tuple[Extent, Plan, Mapping[Partition, Seen]]:
    """What is new; again where a partition turns out to be another one, or a trim has overtaken the offsets."""
    changed: set[Partition] = set()

    def read(now: Extent) -> tuple[Plan, Extent]:
        reads = plan(before, now, realm.prefix, changed)
        starts = {place: start.read for place, start in reads.starts.items()}
        return reads, landing.fill(realm, spark, now, own, KINDS, note, starts)

    while True:
        reads, landed = landing.read_again(extent, read, lambda: landing.extent_of(realm))
        needed = plan(before, landed, realm.prefix, changed)
        extent = landed
        if not reads.covers(needed):
            continue
        seen = first_and_last(spark, own)
        others = changed_of(needed, seen)
        if not others:
            return extent, needed, seen
        changed |= others
