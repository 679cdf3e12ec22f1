"""Rows as findings."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciliation.model.schemas import FINDING


def inside(at: str, since: int, until: int) -> Column:
    """As `model.window.Window.holds` has it: what has no time is never left out."""
    return F.coalesce((F.col(at) >= since) & (F.col(at) < until), F.lit(True))


def findings(
    rows: DataFrame, code: str, detail: Column, also: Sequence[str] = (), **columns: Column | str
) -> DataFrame:
    """Rows as findings of one class. What is not given is the rows' own column of that name, else null; count 1.
    `also`: columns that are kept beside those of a finding."""
    values = {name: F.col(name) for name in FINDING.names if name in rows.columns}
    values |= {"class": F.lit(code), "count": F.lit(1), "detail": detail}
    values |= {name: F.col(column) if isinstance(column, str) else column for name, column in columns.items()}
    return rows.select(
        *(
            values.get(field.name, F.lit(None))
            .cast("bigint" if field.type == pa.int64() else "string")
            .alias(field.name)
            for field in FINDING
        ),
        *also,
    )
