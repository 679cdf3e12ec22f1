"""The shapes of what is read, as Spark DDL and as Arrow schemas.

Times: `at` and `*_us` are microseconds since 1970, `timestamp` of a record is milliseconds since 1970.
Source: docs/records.md.
"""

from __future__ import annotations

import pyarrow as pa

RECORD = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
"""A landed record. Events are landed without their value: nothing is judged by it."""

MESSAGE = pa.schema([*RECORD, ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))])
"""A record of an event as it is stored: only what clients noted is held against it."""

OUTCOMES = """
v int, run string, n bigint, at bigint, low bigint, next bigint, digest string, profile string, closed int,
groups array<struct<
  direction string, link bigint, name string, container string, node string, store bigint, durable string,
  `table` string, cell int, rule string, answer_table string, answer_cell int, answer_rule string,
  operation string, cause string, answer string, native string, outcome string, condition string, class string,
  presettled int, seq array<bigint>, eid array<bigint>>>
"""

JOURNAL = """
v int, run string, n bigint, at bigint,
entries array<struct<
  node string, durable string, store bigint, operation string, failed int, cause string, `to` bigint,
  runs array<array<bigint>>>>
"""

OUTCOME_FIELDS, OUTCOME_PARTS = ("run", "n", "at", "low", "digest", "groups"), (
    "direction", "table", "cell", "operation", "cause", "outcome", "presettled", "seq", "eid",
)  # fmt: skip
"""What every outcome record has, and every group of it. One that lacks something was damaged, and is not read."""
JOURNAL_FIELDS, JOURNAL_PARTS = ("run", "n", "at", "entries"), (
    "node", "durable", "store", "operation", "failed", "cause", "runs",
)  # fmt: skip
"""The same of a journal record and its entries."""

GATEWAY_KEY = r"^[13];[a-z][a-z0-9-]*;[0-9a-f]+-[0-9a-f]{4};[0-9]{1,18}(;|\z)"
COPY_KEY = "^2;[0-9]{1,12};[0-9]{1,18};"
"""Of a copy that the realm itself made of an event (docs/records.md, *Event key*): no peer published it. A number of 19
digits may be none: its key is no gateway's."""
RECORD_DDL = "topic string, partition int, offset bigint, timestamp bigint, key binary, value binary"
MESSAGE_DDL = f"{RECORD_DDL}, headers array<struct<key: string, value: binary>>"
NODES = (
    "store bigint, node string, topic string, partition int, standing string, first_kept bigint, adopted_at bigint, "
    "kind string"
)
DURABLES = (
    "store bigint, node string, durable string, start bigint, mark bigint, first_kept bigint, evicted_below bigint, "
    "known_low bigint, known_until bigint"
)
"""`known_low`, `known_until`: EIDs at or above the one whose ends below the other, an offset of the journal, are in the
durable's snapshot; null: they are not known."""
BEGUN = "store bigint, durable string, journal bigint"
HIDDEN = "store bigint, hidden_first bigint, hidden_end bigint"
RANGES = "store bigint, durable string, first bigint, last bigint"
VOIDS = "store bigint, durable string, before bigint, eid bigint"
BLOCKS = "run string, block bigint"
RUNS = "run string, low bigint, state string, base bigint"
DOUBTS = "run string, torn bigint, in_journal bigint, journal_until bigint"
BEGINNINGS = "run string, began bigint"
PLACES = "store bigint, block bigint"
LOST = "store bigint, why string"
COUNTING = "link string, topic string, partition int, counts bigint"
COUNTED = "link string, topic string, partition int"
STRETCHES = "of_topic string, of_partition int, first bigint, last bigint"
TTLS = "store bigint, node_ttl_ms bigint"
OF_DURABLES = "store bigint, durable string"
LETTERS_TO = "store bigint, in_node string, since bigint"
COPIES_COMPARED = "store bigint, recorded bigint, held bigint, same boolean"
COPIED_TO = "store bigint, in_node string, may_miss int, may_have int"
CELLS = """
digest string, `table` string, cell int, expected_rule string, then_operation string, then_outcome string,
then_condition string, then_class string, then_failed int, transacted int
"""

SUMS = """
sum string, topic string, partition int, run string, block bigint, store bigint, durable string, operation string,
count bigint, `xor` bigint, offset_first bigint, offset_last bigint,
source string, n_first bigint, n_last bigint, n_distinct bigint, at_first bigint, at_last bigint, undated bigint,
low bigint, at_offset_first bigint, next bigint, closed int, digests array<string>, recorded bigint,
direction string, node string, digest string, `table` string, cell int, rule string, answer_table string,
answer_cell int, answer_rule string, cause string, answer string, native string, outcome string, condition string,
class string, presettled int, inside boolean,
example struct<at bigint, run string, seq bigint, eid bigint, link string, container string>,
offset bigint, first bigint, last bigint, lowest bigint, highest bigint, at bigint, ended bigint,
failed int, seq_first bigint, seq_last bigint, places bigint, squares bigint, eid_last bigint, returned boolean,
acknowledged bigint, dead_lettered bigint, expired bigint, filtered bigint, moved bigint, kept_nowhere bigint,
cover bigint, sender bigint, in_order boolean
"""
"""Partial aggregates of a link's rows (`reconciliation.transforms.sums`): `sum` names which columns have a value."""

FINDING = pa.schema(
    [
        ("class", pa.string()),
        ("node", pa.string()),
        ("durable", pa.string()),
        ("store", pa.int64()),
        ("eid", pa.int64()),
        ("run", pa.string()),
        ("seq", pa.int64()),
        ("link", pa.string()),
        ("container", pa.string()),
        ("rule", pa.string()),
        ("count", pa.int64()),
        ("at", pa.int64()),
        ("detail", pa.string()),
    ]
)
"""One finding: a delivery, or a group of deliveries that share what is wrong (`count`), with the first as example."""
FINDING_COLUMNS = tuple(FINDING.names)
