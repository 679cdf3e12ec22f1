"""Landing: the records of a range, once, as Parquet in a directory named by the range.

A landing is complete when its `extent.json` is there: it is written last. A range that is landed is not read again,
unless some of its records could not be decoded then: the ends that are asked for do not tell of those, and a backup may
have brought them back since. Older landings are removed.
Layout: DIRECTORY/NAME/kind=KIND/*.parquet, DIRECTORY/NAME/extent.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from pyspark.sql import SparkSession

from reconciliation.model.errors import SourceError
from reconciliation.model.folder import Folder
from reconciliation.model.ranges import KINDS, TORN, Extent, Kind, name_of
from reconciliation.model.settings import Realm
from reconciliation.model.state import Link, Remark
from reconciliation.read import export, sources
from reconciliation.read.export import Note

Read = TypeVar("Read")

COMPLETE = "extent.json"
MAKING = "making"
TRIES = 3


@dataclass(frozen=True, slots=True)
class Chain:
    """Records that several reconciliations have landed: `folder` has a `link=NAME` for each."""

    folder: Folder
    prefix: str
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Landed:
    """Records that are here. `chain`: where those are that were landed in increments; the rest is in `directory`.
    `remarks`: what was wrong with the evidence when it was continued. `said`: a line for the report; empty: none."""

    directory: Folder
    extent: Extent
    chain: Chain | None = None
    remarks: tuple[Remark, ...] = ()
    said: str = ""

    def files(self, kind: Kind) -> Folder | None:
        """The Parquet files of a kind; None when it has no records."""
        folder = self.directory / f"kind={kind}"
        return folder if folder.exists() else None


def land(
    realm: Realm, extent: Extent, spark: SparkSession, directory: Folder, kinds: Collection[Kind] = KINDS,
    note: Note = str,
) -> Landed:  # fmt: skip
    """Make the realm, as it was when `extent` was asked for or later, available as Parquet below `directory`. `kinds`:
    only the records of these. `note`: gets words for what remains, time and again."""

    def landed(now: Extent) -> Landed:
        target = directory / name_of(now)
        return Landed(target, now) if _is_whole(target) else _fill(realm, spark, now, directory, kinds, note)

    return read_again(extent.only(realm.prefix, kinds), landed, lambda: extent_of(realm).only(realm.prefix, kinds))


def read_again(extent: Extent, read: Callable[[Extent], Read], now: Callable[[], Extent]) -> Read:
    """What `read` makes of the extent; or of what there is `now`, where it raises SourceError: a trim may have
    overtaken the offsets. What fails the same way twice is raised."""
    for attempt in range(1, TRIES + 1):
        try:
            return read(extent)
        except SourceError:
            previous, extent = extent, now()
            if attempt == TRIES or extent.ranges == previous.ranges:
                raise
    raise AssertionError("the loop returns or raises")


def extent_of(realm: Realm) -> Extent:
    """The ranges as they are now. Raises SourceError when the realm cannot be reached."""
    if realm.path is not None:
        return export.extent_of(realm.path, realm.prefix)
    from reconciliation.read import offsets  # only a realm on Kafka pays for its client

    return offsets.extent_of(realm.bootstrap, realm.prefix, realm.client)


def _is_whole(target: Folder) -> bool:
    """It is complete, and every record of it could be decoded."""
    complete = target.read(COMPLETE)
    return complete is not None and all(gap["why"] != TORN for gap in json.loads(complete)["unread"])


def _fill(
    realm: Realm, spark: SparkSession, extent: Extent, directory: Folder, kinds: Collection[Kind], note: Note
) -> Landed:
    directory.remove(MAKING)
    extent = fill(realm, spark, extent, directory / MAKING, kinds, note, {})
    target = directory / name_of(extent)
    for old in directory.names():
        if old != MAKING:
            directory.remove(old)
    directory.move(MAKING, target)
    target.write(COMPLETE, json.dumps(extent.as_json(), indent=1).encode())
    return Landed(target, extent)


def fill(
    realm: Realm, spark: SparkSession, extent: Extent, target: Folder, kinds: Collection[Kind], note: Note,
    starts: Mapping[tuple[str, int], int],
) -> Extent:  # fmt: skip
    """Write the records below `target`, in place of an earlier try's, from `starts` on where a (topic, partition) has
    one; returns what was there to be read."""
    for kind in kinds:
        target.remove(f"kind={kind}")
    target.make()
    if realm.path is not None:
        with target.filled() as local:
            return export.export(realm.path, realm.prefix, local, kinds, note, starts)
    ranges = (replace(span, first=starts.get((span.topic, span.partition), span.first)) for span in extent.ranges)
    rest = replace(extent, ranges=tuple(ranges))
    sources.land_kafka(spark, realm.bootstrap, realm.prefix, realm.client, rest, target.url)
    return extent
