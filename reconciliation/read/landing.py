"""Landing: the records of a range, once, as Parquet in a directory named by the range.

A landing is complete when its `extent.json` is there: it is written last. A range that is landed is not read again,
unless some of its records could not be decoded then: the ends that are asked for do not tell of those, and a backup may
have brought them back since. Older landings are removed.
Layout: DIRECTORY/NAME/kind=KIND/*.parquet, DIRECTORY/NAME/extent.json.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from reconciliation.model.errors import SourceError
from reconciliation.model.ranges import KINDS, TORN, Extent, Kind, name_of
from reconciliation.model.settings import Realm
from reconciliation.read import export, sources

COMPLETE = "extent.json"
TRIES = 3


@dataclass(frozen=True, slots=True)
class Landed:
    """Records that are here."""

    directory: Path
    extent: Extent

    def files(self, kind: Kind) -> Path | None:
        """The Parquet directory of a kind; None when it has no records."""
        path = self.directory / f"kind={kind}"
        return path if path.exists() else None


def land(realm: Realm, extent: Extent, spark: SparkSession, directory: Path, kinds: Collection[Kind] = KINDS) -> Landed:
    """Make the realm, as it was when `extent` was asked for or later, available as Parquet below `directory`. `kinds`:
    only the records of these."""
    extent = extent.only(realm.prefix, kinds)
    for attempt in range(1, TRIES + 1):
        target = directory / name_of(extent)
        if _is_whole(target):
            return Landed(target, extent)
        try:
            return _fill(realm, spark, extent, directory, kinds)
        except SourceError:
            # A trim may have overtaken the offsets: ask again. What fails the same way twice is reported.
            previous, extent = extent, extent_of(realm).only(realm.prefix, kinds)
            if attempt == TRIES or extent.ranges == previous.ranges:
                raise
    raise AssertionError("the loop returns or raises")


def extent_of(realm: Realm) -> Extent:
    """The ranges as they are now. Raises SourceError when the realm cannot be reached."""
    if realm.path is not None:
        return export.extent_of(realm.path, realm.prefix)
    from reconciliation.read import offsets  # only a realm on Kafka pays for its client

    return offsets.extent_of(realm.bootstrap, realm.prefix, realm.client)


def _is_whole(target: Path) -> bool:
    """It is complete, and every record of it could be decoded."""
    if not (target / COMPLETE).exists():
        return False
    return all(one["why"] != TORN for one in json.loads((target / COMPLETE).read_text())["unread"])


def _fill(realm: Realm, spark: SparkSession, extent: Extent, directory: Path, kinds: Collection[Kind]) -> Landed:
    making = directory / "making"
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir(parents=True)
    if realm.path is not None:
        extent = export.export(realm.path, realm.prefix, making, kinds)
    else:
        sources.land_kafka(spark, realm.bootstrap, realm.prefix, realm.client, extent, making)
    target = directory / name_of(extent)
    for old in directory.iterdir():
        if old != making:
            shutil.rmtree(old)
    making.rename(target)
    (target / COMPLETE).write_text(json.dumps(extent.as_json(), indent=1))
    return Landed(target, extent)
