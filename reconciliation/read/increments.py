"""Landing in increments: a reconciliation continues from what earlier ones have read, in a directory of its own.

Layout: DIRECTORY/links/link=NAME/kind=KIND/*.parquet, and DIRECTORY/state.json, which names the links that count and is
written last of all (`Increment.keep`): a reconciliation that ends before leaves the earlier state in force. What it had
landed is removed by the next one. Each partition is read from its last known record on, which has to be the same still:
so a store that became shorter and grew again is seen. Errors: `SettingsError`, `SourceError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from reconciliation.model import schemas
from reconciliation.model.errors import SetupError, SourceError
from reconciliation.model.folder import Folder
from reconciliation.model.ranges import KINDS, TORN, Extent, name_of
from reconciliation.model.settings import Realm
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
from reconciliation.read import landing
from reconciliation.read.export import Note
from reconciliation.read.landing import MAKING, TRIES, Chain, Landed

FILE = "state.json"
_LINKS, _WHOLE = "links", "landed"
_UNREAD = "{} cannot be read"
_TORN = "some records cannot be decoded"


@dataclass(frozen=True, slots=True)
class Increment:
    """What is to be judged, and the state that is left once it is (None: the earlier one stays)."""

    landed: Landed
    directory: Folder
    before: bytes | None
    after: State | None

    def keep(self) -> None:
        """The next reconciliation continues from here. Raises SetupError where another one has done so meanwhile."""
        if self.after is None:
            return
        if self.directory.read(FILE) != self.before:
            raise SetupError(f"another reconciliation has continued from {self.directory} meanwhile: run again")
        self.directory.write(FILE, self.after.as_json())


def land(
    realm: Realm, extent: Extent, spark: SparkSession, directory: Folder, now_us: int, note: Note = str
) -> Increment:
    """Make the realm, as it was when `extent` was asked for or later, available: new records are read, those that were
    read before are there. `now_us`: the time, in microseconds since 1970."""
    directory.make()
    content = directory.read(FILE)
    before = None if content is None else state_of(content, directory)
    if before is not None:
        check_realm(before, extent, realm.prefix, directory)
    _tidy(directory, before)
    hindered = next((name for kind in EVIDENCE if _is_gone(extent, name := f"{realm.prefix}.{kind}")), None)
    if hindered is not None:
        return _whole(realm, extent, spark, directory, content, before, note, _UNREAD.format(hindered))
    extent, asked, seen = _read(realm, extent, spark, directory / _LINKS, before, note)
    name = f"{1 if before is None else before.count + 1:06d}-{name_of(extent).rpartition('_')[2]}"
    links = directory / _LINKS
    links.move(MAKING, links / f"link={name}")
    state = next_state(before, extent, realm.prefix, asked, seen, name, now_us)
    torn = any(one.why == TORN for one in extent.unread)  # a backup may bring those records back: they are read again
    after = None if torn else state
    landed = Landed(
        links / f"link={name}",
        judged_extent(extent, realm.prefix, state.links),
        Chain(links, realm.prefix, state.links),
        state.remarks,
        words_of(before, after, _TORN),
    )
    return Increment(landed, directory, content, after)


def _is_gone(extent: Extent, topic: str) -> bool:
    return extent.range_of(topic) is None


def _tidy(directory: Folder, state: State | None) -> None:
    """Remove what no state names, and of earlier links what is read as a whole each time."""
    directory.remove(_WHOLE)
    links = directory / _LINKS
    links.make()
    known = {f"link={link.name}" for link in state.links} if state is not None else set()
    for name in links.names():
        if name not in known:
            links.remove(name)
            continue
        for kind in KINDS:
            if kind not in CHAINED:
                (links / name).remove(f"kind={kind}")


def _whole(
    realm: Realm, extent: Extent, spark: SparkSession, directory: Folder, content: bytes | None, before: State | None,
    note: Note, why: str,
) -> Increment:  # fmt: skip
    """This time it cannot be continued."""
    landed = landing.land(realm, extent, spark, directory / _WHOLE, note=note)
    remarks = before.remarks if before is not None else ()
    said = Landed(landed.directory, landed.extent, None, remarks, words_of(before, None, why))
    return Increment(said, directory, content, None)


def _read(
    realm: Realm, extent: Extent, spark: SparkSession, links: Folder, before: State | None, note: Note
) -> tuple[Extent, Plan, Mapping[Partition, Seen]]:
    """What is new; again where a partition turns out to be another one, or a trim has overtaken the offsets."""
    changed: set[Partition] = set()
    failures = 0
    while True:
        asked = plan(before, extent, realm.prefix, changed)
        starts = {place: start.read for place, start in asked.starts.items()}
        try:
            found = landing.fill(realm, spark, extent, links, KINDS, note, starts)
        except SourceError:
            failures += 1
            previous, extent = extent, landing.extent_of(realm)
            if failures == TRIES or extent.ranges == previous.ranges:
                raise
            continue
        needed = plan(before, found, realm.prefix, changed)
        extent = found
        if not asked.covers(needed):
            continue
        seen = _seen(spark, links / MAKING)
        others = changed_of(needed, seen)
        if not others:
            return extent, needed, seen
        changed |= others


def _seen(spark: SparkSession, landed: Folder) -> dict[Partition, Seen]:
    folders = [folder.url for kind in CHAINED if (folder := landed / f"kind={kind}").exists()]
    if not folders:
        return {}
    hashed = F.xxhash64("timestamp", "key", "value")
    records = spark.read.schema(schemas.RECORD_DDL).option("basePath", landed.url).parquet(*folders)
    found = records.groupBy("topic", "partition").agg(
        F.min("offset"), F.min_by(hashed, "offset"), F.max("offset"), F.max_by(hashed, "offset")
    )
    return {(row[0], row[1]): Seen(*row[2:]) for row in found.collect()}
