"""The partial aggregates of links, kept beside their records: `links/link=NAME/sum=KIND/*.parquet`.

`sums.json` is written last: it has a digest of the names of the files, and one of the code that made them. Where a link
has none, or the sums of another auditor, there are none: all rows are judged.
"""

from __future__ import annotations

import json
import pkgutil
from hashlib import blake2b
from importlib.abc import InspectLoader

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from reconciliation import jobs, model, read, transforms
from reconciliation.model import schemas
from reconciliation.model.folder import Folder
from reconciliation.model.ranges import Kind, kind_of
from reconciliation.model.state import EVIDENCE, Link
from reconciliation.read.landing import Chain, Landed
from reconciliation.read.links import files_of
from reconciliation.transforms import frames, sums

COMPLETE = "sums.json"
_SUM = "sum="


def kept(spark: SparkSession, landed: Landed, chain: Chain) -> DataFrame | None:
    """Of all links, those that count; None: a link has none. Those of the newest link are made now."""
    auditor = _auditor()
    newest = chain.links[-1]
    if not auditor or any(_is_divided(link, chain.prefix) for link in chain.links):
        return None
    _make(spark, landed, chain, newest, auditor)
    if any(_mark(chain, link, auditor) != _folder(chain, link).read(COMPLETE) for link in chain.links):
        return None
    there = {(span.topic, span.partition): span.first for span in landed.extent.ranges}
    if any(there.get((span.topic, span.partition), 0) > span.first for link in chain.links for span in link.ranges):
        return None  # some records of a link count no more
    counting = [
        (link.name, span.topic, span.partition)
        for link in chain.links
        for span in link.ranges
        if (span.topic, span.partition) in there
    ]
    paths = [
        (folder / name).url
        for folder in (_folder(chain, link) for link in chain.links)
        for name in folder.names()
        if name.startswith(_SUM)
    ]
    if not paths:
        return frames.local_table(spark, [], schemas.SUMS)
    reader = spark.read.option("basePath", chain.folder.url).schema(f"link string, {schemas.SUMS}")
    table = F.broadcast(frames.local_table(spark, counting, schemas.COUNTED))
    return reader.parquet(*paths).join(table, ["link", "topic", "partition"], "left_semi")


def _is_divided(link: Link, prefix: str) -> bool:
    """Outcome records or journal of several partitions: the sums know of one."""
    return any(kind_of(prefix, span.topic) in EVIDENCE and span.partition for span in link.ranges)


def _make(spark: SparkSession, landed: Landed, chain: Chain, link: Link, auditor: str) -> None:
    def of_link(kind: Kind) -> DataFrame:
        return frames.link_records(spark, landed, chain, link, kind)

    folder, records = _folder(chain, link), frames.decoded(of_link)
    for name in (COMPLETE, *(name for name in folder.names() if name.startswith(_SUM))):
        folder.remove(name)  # twice in there, they would agree whatever the rows say
    table = sums.of_link(records.outcomes, records.journal, records.events, chain.prefix)
    table.coalesce(1).write.partitionBy("sum").parquet(folder.url, mode="append")
    folder.write(COMPLETE, _mark(chain, link, auditor))
    records.outcomes.unpersist()
    records.journal.unpersist()


def _folder(chain: Chain, link: Link) -> Folder:
    return chain.folder / f"link={link.name}"


def _mark(chain: Chain, link: Link, auditor: str) -> bytes:
    folders = sorted(name for name in _folder(chain, link).names() if name.startswith(_SUM))
    return json.dumps({"auditor": auditor, "files": files_of(chain.folder, link.name, folders)}).encode()


def _auditor() -> str:
    """A digest of the code that reads rows and makes sums of them; empty: there is no source here."""
    digest = blake2b(pyspark.__version__.encode(), digest_size=16)
    for package in (jobs, model, read, transforms):
        for module in pkgutil.iter_modules(package.__path__):
            spec = module.module_finder.find_spec(module.name, None)
            loader = None if spec is None else spec.loader
            source = loader.get_source(module.name) if isinstance(loader, InspectLoader) else None
            if source is None:
                return ""
            digest.update(source.encode())
    return digest.hexdigest()
