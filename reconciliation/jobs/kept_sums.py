"""The partial aggregates of links, kept beside their records: `links/link=NAME/made=ID/sum=KIND/*.parquet`.

`sums.json` is written last: it names the folder, and has a digest of its files, one of the code that made them, and the
partitions whose records they are of. What a link has not, or has of another auditor or damaged, is made of its records:
of the newest link, of one that was merged, of all where the reconciliations before kept no sums. Of two reconciliations
at once each makes a folder of its own; those of a link go when it goes.
"""

from __future__ import annotations

import json
import pkgutil
from dataclasses import dataclass, replace
from hashlib import blake2b
from importlib.abc import InspectLoader
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import numpy
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from reconciliation import jobs, model, read, summing, transforms
from reconciliation.model import schemas
from reconciliation.model.folder import Folder, LocalFolder
from reconciliation.model.ranges import Kind, kind_of
from reconciliation.model.run_sums import RowsNeededError
from reconciliation.model.state import CHAINED, EVIDENCE, Link
from reconciliation.read.landing import Chain, Landed
from reconciliation.summing.link import of_link as of_link_by_columns
from reconciliation.transforms import frames, sums

COMPLETE = "sums.json"
_MADE, _SUM = "made", "sum="
_VERSIONS = " ".join(package.__version__ for package in (pyspark, numpy, orjson, pa))
VERIFIED = set[tuple[str, bytes]]()  # links and marks, by this process: from one round to the next they stay


@dataclass(frozen=True, slots=True)
class Kept:
    """Of all links, those that count; `rows`: how many there are at most; `names`: of which sums there are some."""

    sums: DataFrame
    rows: int
    names: frozenset[str]


def kept(spark: SparkSession, landed: Landed, chain: Chain) -> Kept:
    """Raises RowsNeededError where they cannot tell what all rows tell."""
    auditor = _auditor()
    if not auditor:
        raise RowsNeededError("there is no source of this auditor here")
    if any(_is_divided(link, chain.prefix) for link in chain.links):
        raise RowsNeededError("the outcome records or the journal have several partitions")
    there = {(span.topic, span.partition): span.first for span in landed.extent.ranges}
    evidence = (span for link in chain.links for span in link.ranges if kind_of(chain.prefix, span.topic) in EVIDENCE)
    if any(there.get((span.topic, span.partition), 0) > span.first for span in evidence):
        raise RowsNeededError("some records of an increment count no more")
    counting, paths, rows, all_count, names = list[tuple[str, str, int]](), list[str](), 0, True, set[str]()
    for link in chain.links:
        own = {(span.topic, span.partition) for span in link.ranges}
        places, all_count = sorted(own & there.keys()), all_count and own <= there.keys()
        counting += [(link.name, topic, partition) for topic, partition in places]
        folder, of_link = _made(spark, landed, chain, link, {"auditor": auditor, "of": [[*place] for place in places]})
        rows += of_link
        parts = [name for name in folder.names() if name.startswith(_SUM)]
        paths += [(folder / name).url for name in parts]
        names |= {name.removeprefix(_SUM) for name in parts}
    if not paths:
        return Kept(frames.local_table(spark, [], schemas.SUMS), 0, frozenset())
    reader = spark.read.option("basePath", chain.folder.url).schema(f"link string, {_MADE} string, {schemas.SUMS}")
    sums_of_links = reader.parquet(*paths).drop(_MADE)
    if not all_count:
        table = F.broadcast(frames.local_table(spark, counting, schemas.COUNTED))
        sums_of_links = sums_of_links.join(table, ["link", "topic", "partition"], "left_semi")
    return Kept(sums_of_links, rows, frozenset(names))


def _is_divided(link: Link, prefix: str) -> bool:
    """Outcome records or journal of several partitions: the sums know of one."""
    return any(kind_of(prefix, span.topic) in EVIDENCE and span.partition for span in link.ranges)


def _made(spark: SparkSession, landed: Landed, chain: Chain, link: Link, wanted: dict[str, Any]) -> tuple[Folder, int]:
    """The folder of a link's sums, and how many there are. `wanted`: what its mark has to say; where it does not, they
    are made now."""

    def of_link(kind: Kind) -> DataFrame:
        return frames.of_links(spark, replace(chain, links=(link,)), landed.extent, kind)

    own = chain.folder / f"link={link.name}"
    content = own.read(COMPLETE) or b""
    mark = _read(content)
    name = str(mark.get("folder"))
    measured = {"files": "", "rows": 0}
    if {**mark, **measured} == {**wanted, "folder": name, **measured} and measured.keys() <= mark.keys():
        verified = own.url, content
        if verified in VERIFIED or (mark["files"], mark["rows"]) == _measured(own, name):
            VERIFIED.add(verified)
            return own / name, mark["rows"]
    name = f"{_MADE}={uuid4().hex[:12]}"
    if not _made_here(landed, chain, link, own, name):
        records = frames.decoded(of_link)
        table = sums.of_link(records.outcomes, records.journal, records.events, chain.prefix)
        table.coalesce(1).write.partitionBy("sum").parquet((own / name).url)
        records.outcomes.unpersist()
        records.journal.unpersist()
    files, rows = _measured(own, name)
    own.write(COMPLETE, json.dumps({**wanted, "folder": name, "files": files, "rows": rows}).encode())
    return own / name, rows


def _made_here(landed: Landed, chain: Chain, link: Link, own: Folder, name: str) -> bool:
    """Without Spark. False: this machine has not the records, or they are not plain, and nothing was made."""
    if not isinstance(own, LocalFolder):
        return False
    counts = {(topic, partition): first for _, topic, partition, first in frames.counting([link], landed.extent)}
    folders: dict[str, Path] = {kind: own.path / f"kind={kind}" for kind in CHAINED if (own / f"kind={kind}").exists()}
    tables = of_link_by_columns(folders, counts, chain.prefix, types())
    if tables is None:
        return False
    made = own / name
    made.make()  # without any record there is no table
    for kind, table in tables:
        folder = made / f"{_SUM}{kind}"
        folder.make()
        pq.write_table(table, folder.path / "part-0.parquet", compression="zstd")
    return True


def types() -> pa.Schema:
    """Of a table of sums, whose folder has its name. Spark reads it with these."""
    columns = [field for field in cast(StructType, StructType.fromDDL(schemas.SUMS)) if field.name != "sum"]
    return to_arrow_schema(StructType(columns))


def _read(mark: bytes) -> dict[str, Any]:
    """Empty where it is none."""
    try:
        content = json.loads(mark)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _measured(link: Folder, name: str) -> tuple[str, int]:
    """A digest of the names and the octets of its sums, as wrong ones would agree, whatever the rows say; and how many
    they are."""
    digest, rows = blake2b(digest_size=16), 0
    folder = link / name
    for part in [part for part in folder.names() if part.startswith(_SUM)] if name in link.names() else []:
        for file in [file for file in (folder / part).names() if file.endswith(".parquet")]:
            content = (folder / part).read(file) or b""
            digest.update(f"{part}/{file} {len(content)} ".encode())
            digest.update(content)
            rows += _rows(content)
    return digest.hexdigest(), rows


def _rows(content: bytes) -> int:
    try:
        return int(pq.read_metadata(pa.BufferReader(content)).num_rows)
    except (pa.ArrowException, OSError):  # Arrow says either of a file that is none
        return 0  # its digest is another one than that of the mark


def _auditor() -> str:
    """A digest of the code that reads rows and makes sums of them; empty: there is no source here."""
    digest = blake2b(_VERSIONS.encode(), digest_size=16)
    for package in (jobs, model, read, summing, transforms):
        for module in pkgutil.iter_modules(package.__path__):
            spec = module.module_finder.find_spec(module.name, None)
            loader = None if spec is None else spec.loader
            source = loader.get_source(module.name) if isinstance(loader, InspectLoader) else None
            if source is None:
                return ""
            digest.update(source.encode())
    return digest.hexdigest()
