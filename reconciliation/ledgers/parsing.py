"""Message-id and body of stored messages, as Spark columns: their sections are walked as far as the body.

The message-id is text: a string as it is, a number in decimal, a UUID as usual, octets in hexadecimal. The body is the
crc32 of the octets of its only data section, or of its string or binary value, in eight hexadecimal digits; null for
any other. Sources: AMQP 1.0, part 1 section 1.6 and part 3 section 3.2; docs/records.md "Event key",
docs/kafka-headers.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciliation.model.schemas import COPY_KEY, GATEWAY_KEY
from reconciliation.read.sources import identity

_COPIED = "^(2;[0-9]{1,12};[0-9]{1,18};[^;]*;)+"
_HEADED, _OF_ANOTHER = "^3;complete;", "^3;(?!complete;)"
_PROPERTIES, _DATA, _VALUE, _FOOTER = "005373", "005375", "005377", "005378"
_BEFORE_BODY = ("005370", "005371", "005372", _PROPERTIES, "005374")
_FAR = 1 << 28
_ID, _BODY_KIND, _TYPES = "nHeader.MessageId", "um-body", "um-types"


def parsed(messages: DataFrame) -> DataFrame:
    """Adds `run` and `seq` (of what a gateway published), `id`, `body`, and `is_read`: false for a gateway's message
    whose sections could not be walked. Takes away key, value and headers."""
    rows = messages.withColumn("name", identity().cast("string"))
    fields = F.when(F.col("name").rlike(GATEWAY_KEY), F.split("name", ";", 8))
    rows = rows.withColumns({"run": F.get(fields, 2), "seq": F.get(fields, 3).cast("bigint")})
    rows = rows.withColumn("bare", F.regexp_replace("name", _COPIED, ""))
    rows = rows.withColumn("is_of_another", F.coalesce(F.col("bare").rlike(_OF_ANOTHER), F.lit(False)))
    rows = rows.withColumn(
        "is_ours", F.coalesce(F.col("name").rlike(COPY_KEY) | F.col("run").isNotNull(), F.lit(False))
    )
    rows = _walked(rows).withColumn("is_headed", F.coalesce(F.col("bare").rlike(_HEADED), F.lit(False)))
    has_none = ~F.col("is_ours") | F.col("is_of_another")
    rows = rows.withColumns(
        {
            "id": F.when(~has_none, F.when(F.col("is_headed"), _id_in_headers()).otherwise(_id())),
            "body": F.when(~has_none, F.when(F.col("is_headed"), _headed_body()).otherwise(_body())),
            "is_read": ~F.col("is_ours") | F.col("is_headed") | (F.col("is_whole") & ~F.col("is_of_another")),
        }
    )
    return rows.select("topic", "partition", "offset", "timestamp", "run", "seq", "id", "body", "is_read")


def _walked(rows: DataFrame) -> DataFrame:
    """With `id_at` and `body_at`, where the properties and the body begin: null where there is none; and `is_whole`."""
    place, codes = _BEFORE_BODY.index(_PROPERTIES), [F.lit(code) for code in _BEFORE_BODY]
    rows = rows.withColumn("at", _behind(F.when(F.col("is_ours"), F.lit(0)), codes[:place]))
    rows = rows.withColumn("id_at", F.when(_section("at") == _PROPERTIES, F.col("at")))
    rows = rows.withColumn("at", _behind(F.col("at"), codes[place:]))
    is_body = F.coalesce(_section("at").isin(_DATA, _VALUE, "005376"), F.lit(False))
    is_end = (F.col("at") == F.length("value")) | (_section("at") == _FOOTER)  # some send no body
    is_whole = is_body | F.coalesce(is_end & (F.col("at") > 0), F.lit(False))
    return rows.withColumn("body_at", F.when(is_body, F.col("at"))).withColumn("is_whole", is_whole)


def _behind(start: Column, codes: Sequence[Column]) -> Column:
    """Where the octets go on behind those of these sections that are there, each once and in this order. It is one
    expression of fixed size: Spark would put steps that are columns into each other, eight times each."""

    def step(at: Column, code: Column) -> Column:
        return F.when(_hex(at, 3) == code, _after(at)).otherwise(at)

    return F.aggregate(F.array(*codes), start, step)


def _octets(at: Column, count: Column | int) -> Column:
    return F.substr("value", at + 1, F.lit(count) if isinstance(count, int) else count)


def _hex(at: Column, count: Column | int) -> Column:
    return F.lower(F.hex(_octets(at, count)))


def _number(at: Column, octets: int) -> Column:
    """At most `_FAR`: behind the end of every message; what lies there is nothing."""
    return F.least(F.conv(F.hex(_octets(at, octets)), 16, 10).cast("bigint"), F.lit(_FAR)).cast("int")


def _section(at: str) -> Column:
    return _hex(F.col(at), 3)


def _after(at: Column) -> Column:
    """Where what follows the section begins, which is a list, a map or nothing."""
    start, code = at + 3, _hex(at + 3, 1)
    return (
        F.when(code == "45", start + 1)
        .when(code.isin("c0", "c1"), start + 2 + _number(start + 1, 1))
        .when(code.isin("d0", "d1"), start + 5 + _number(start + 1, 4))
    )


def _id() -> Column:
    """The first field of the properties."""
    start, code = F.col("id_at") + 3, _hex(F.col("id_at") + 3, 1)
    at = F.when((code == "c0") & (_number(start + 2, 1) > 0), start + 3)
    at = at.when((code == "d0") & (_number(start + 5, 4) > 0), start + 9)
    kind = _hex(at, 1)
    return (
        F.when(kind == "a1", _octets(at + 2, _number(at + 1, 1)).cast("string"))
        .when(kind == "b1", _octets(at + 5, _number(at + 1, 4)).cast("string"))
        .when(kind == "a0", _hex(at + 2, _number(at + 1, 1)))
        .when(kind == "b0", _hex(at + 5, _number(at + 1, 4)))
        .when(kind == "80", F.conv(_hex(at + 1, 8), 16, 10))
        .when(kind == "53", _number(at + 1, 1).cast("string"))
        .when(kind == "44", F.lit("0"))
        .when(kind == "98", _uuid(_hex(at + 1, 16)))
    )


def _uuid(digits: Column) -> Column:
    return F.regexp_replace(digits, "^(.{8})(.{4})(.{4})(.{4})(.{12})$", "$1-$2-$3-$4-$5")


def _body() -> Column:
    at, kind = F.col("body_at"), _hex(F.col("body_at") + 3, 1)
    short, size = kind.isin("a0", "a1"), F.when(kind.isin("a0", "a1"), _number(at + 4, 1)).otherwise(_number(at + 4, 4))
    begin = F.when(short, at + 5).otherwise(at + 8)
    is_data, is_value = _section("body_at") == _DATA, _section("body_at") == _VALUE
    is_one = (is_data & kind.isin("a0", "b0")) | (is_value & kind.isin("a0", "b0", "a1", "b1"))
    more = _hex(begin + size, 3) == _DATA
    return F.when(is_one & ~more, _crc(_octets(begin, size)))


def _crc(octets: Column) -> Column:
    return F.lpad(F.lower(F.hex(F.crc32(octets))), 8, "0")


def _headed_body() -> Column:
    return F.when(_header(_BODY_KIND).cast("string").isin("data", "binary", "string"), _crc(F.col("value")))


def _header(name: str) -> Column:
    return F.try_element_at(F.filter("headers", lambda header: header["key"] == name), F.lit(1))["value"]


def _id_in_headers() -> Column:
    """Its type stands at its place among the types of all headers behind those."""
    names = F.transform("headers", lambda header: header["key"])
    place = F.array_position(names, _ID) - F.array_position(names, _TYPES)
    kind = F.try_element_at(F.split(_header(_TYPES).cast("string"), ","), place.cast("int"))
    return F.when(kind == "binary", F.lower(F.hex(_header(_ID)))).otherwise(_header(_ID).cast("string"))
