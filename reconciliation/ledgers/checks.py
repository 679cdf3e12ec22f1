"""The questions: was each message that a client was told of as accepted stored, told as it is recorded, given as it is
stored, with the body that was sent, and settled as its consumer said? Classes C1-C5.

Each gives findings, and rows with `why_not` for what it could not compare. A message-id may be sent several times: then
as many have to agree.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from reconciliation.ledgers.lines import UNKNOWN, Lines
from reconciliation.ledgers.recorded import TRANSACTIONAL, Recorded
from reconciliation.transforms.finding_rows import findings

SKEW_US = 60_000_000
"""Clocks of clients and servers may differ so much."""
WHY_NOT = "why_not"
_ENDS = ("accepted", "rejected")


def _answered(rows: DataFrame, code: str, **columns: Column | str) -> DataFrame:
    """`rows`: with `why_not`, and `words` of what is wrong; most have neither."""
    words = F.when(F.col(WHY_NOT).isNull(), F.col("words"))
    spoken_of = rows.where(F.col(WHY_NOT).isNotNull() | F.col("words").isNotNull())
    return findings(spoken_of, code, words, also=(WHY_NOT,), **columns)


def messages_of(lines: Lines, stored: DataFrame, recorded: Recorded, nodes: DataFrame) -> DataFrame:
    """One row a message-id that some client has sent: what it was told, what is stored, and what is recorded; `unkept`:
    why one of its events may not be there any more. `nodes`: node, unread (some of it could not be), oldest (when what
    is kept begins; null: from the first), created (when it was made, if another node had that name before; null: none
    had)."""
    committed = lines.of("committed").select("client", "transaction").distinct().withColumn("is_committed", F.lit(True))
    sent = lines.of("sent").join(committed, ["client", "transaction"], "left")
    sent = sent.join(F.broadcast(nodes.withColumn("is_known", F.lit(True))), "node", "left")
    in_doubt = F.col("transaction").isNotNull() & F.col("is_committed").isNull()
    by_id = sent.groupBy("id").agg(
        F.min("node").alias("node"),
        F.min("container").alias("container"),
        F.count("*").alias("times"),
        F.min("at").alias("at"),
        F.max(F.col("transaction").isNotNull()).alias("in_transaction"),
        F.max(in_doubt).alias("in_doubt"),
        F.max(_unkept()).alias("unkept"),
        F.array_sort(F.collect_set("body")).alias("sent_bodies"),
        F.count("body").alias("with_body"),
    )
    accepted = F.col("outcome") == "accepted"
    answers = (
        lines.of("told")
        .groupBy("id")
        .agg(
            F.count("*").alias("answers"),
            F.count_if(accepted).alias("accepted"),
            F.min(F.when(~accepted, F.col("outcome"))).alias("otherwise"),
        )
    )
    with_records = stored.where(F.col("id").isNotNull()).join(recorded.publishes, ["run", "seq"], "left")
    delivery = F.struct("run", "seq")  # of which a realm may keep two events (P2)
    kept = with_records.groupBy("id").agg(
        F.count_distinct(F.when(F.col("run").isNotNull(), delivery)).alias("stored"),
        F.count("*").alias("places"),
        F.count_distinct(F.when(F.col("recorded").isNotNull(), delivery)).alias("records"),
        F.count_distinct(F.when(F.col("recorded") == "accepted", delivery)).alias("as_accepted"),
        F.min(F.when(F.col("recorded") != "accepted", F.col("recorded"))).alias("as_other"),
        F.min(F.struct("store", "eid", "run", "seq")).alias("place"),
        F.array_sort(F.collect_set("body")).alias("stored_bodies"),
    )
    refused = recorded.refused.groupBy("id").agg(
        F.count("*").alias("refusals"), F.min("refused_as").alias("refused_as")
    )
    joined = by_id.join(answers, "id", "left").join(kept, "id", "left").join(refused, "id", "left")
    return joined.fillna(0, ["answers", "accepted", "stored", "places", "records", "as_accepted", "refusals"])


def _unkept() -> Column:
    trimmed = F.col("oldest").isNotNull() & (F.col("at") < F.col("oldest") + SKEW_US)
    return (
        F.when(F.col("is_known").isNull(), "accepted in a node that is no more, or whose store could not be read")
        .when(F.col("unread"), "accepted in a node of which some messages could not be read")
        .when(F.col("at") < F.col("created") + SKEW_US, "accepted before the node of that name was made")
        .when(trimmed, "accepted before what the store still keeps")
    )


def is_lost(messages: DataFrame) -> DataFrame:
    """C1."""
    rows = messages.where((F.col("accepted") > 0) & (F.col("places") == 0))
    in_doubt = F.when(F.col("in_doubt"), "accepted in a transaction of which no line says that it was committed")
    words = F.concat(F.lit("the client was told accepted, and no event has the message-id: "), "id")
    return _answered(rows.withColumns({WHY_NOT: in_doubt.otherwise(F.col("unkept")), "words": words}), "C1")


def is_told_otherwise(messages: DataFrame) -> DataFrame:
    """C2."""
    compared = (F.col("stored") > 0) & (F.col("answers") > 0) & ~F.col("in_transaction")
    without = compared & (F.col("records") < F.col("stored"))
    more_told = compared & (F.col("accepted") > F.col("as_accepted"))
    unanswered = F.greatest(F.col("times") - F.col("answers"), F.lit(0))
    more_recorded = compared & (F.col("as_accepted") > F.col("accepted") + unanswered)
    once = (F.col("times") == 1) & (F.col("answers") == 1) & (F.col("refusals") == 1)
    refused = once & (F.col("stored") == 0) & (F.col("accepted") == 0) & (F.col("otherwise") != F.col("refused_as"))
    words = (
        F.when(more_told, _told(F.lit("accepted"), F.coalesce(F.col("as_other"), F.lit("one answer less"))))
        .when(more_recorded, _told(F.coalesce(F.col("otherwise"), F.lit("one answer less")), F.lit("accepted")))
        .when(refused, _told(F.col("otherwise"), F.col("refused_as")))
    )
    some_gone = compared & (F.col("accepted") > F.col("stored")) & F.col("unkept").isNotNull()
    reason = F.when(without, "answers of messages whose outcome record is not kept").when(some_gone, F.col("unkept"))
    words = F.concat(words, F.lit(", of the message-id: "), "id")
    return _answered(messages.withColumns({WHY_NOT: reason, "words": words}), "C2", **_place())


def _place() -> dict[str, Column | str]:
    return {name: F.col("place")[name] for name in ("store", "eid", "run", "seq")}


def _told(outcome: Column, recorded: Column) -> Column:
    return F.concat(F.lit("the client was told "), outcome, F.lit(", and recorded is "), recorded)


def is_sent_body_stored(messages: DataFrame) -> DataFrame:
    """C4, of publishers."""
    sent = messages.where((F.col("with_body") > 0) & (F.col("places") > 0))
    unknown = F.size("stored_bodies") == 0
    reason = F.when(unknown, "bodies sent that are stored in a form without a checksum")
    others = F.size(F.array_except("stored_bodies", "sent_bodies")) > 0
    words = F.concat(F.lit("the body that is stored is not the one that was sent, of the message-id: "), "id")
    wrong = F.when(others & (F.col("with_body") == F.col("times")), words)
    return _answered(sent.withColumns({WHY_NOT: reason, "words": wrong}), "C4", **_place())


def places_of(stored: DataFrame) -> DataFrame:
    """By message-id: how many `places` it has, the first one as `place` (store, eid, body, node), and how many `bodies`
    they have."""
    return stored.where(F.col("id").isNotNull()).groupBy("id").agg(
        F.min(F.struct("store", "eid", "body", "node")).alias("place"), F.count("*").alias("places"),
        F.size(F.collect_set("body")).alias("bodies"),
    )  # fmt: skip


def received(lines: Lines, stored: DataFrame, places: DataFrame, stores: DataFrame, others: DataFrame) -> DataFrame:
    """One row for each message that a client was given, beside what its tag names, or else its message-id. `places`:
    see `places_of`. `stores`: store, node, first (offset that is kept), unread. `others`: store, of those that were not
    read."""
    given = lines.of("received").select("client", "container", "at", "id", "body", "store", "eid")
    held = stored.select(
        "store", "eid", F.col("id").alias("stored_id"), F.col("body").alias("stored_body"), "is_read",
        F.lit(True).alias("is_there"),
    )  # fmt: skip
    by_tag = given.where(F.col("eid").isNotNull()).join(F.broadcast(stores), "store", "left")
    by_tag = by_tag.join(F.broadcast(others.withColumn("is_gone", F.lit(True))), "store", "left")
    by_tag = by_tag.join(held, ["store", "eid"], "left")
    by_id = given.where(F.col("eid").isNull()).drop("store", "eid").join(places, "id", "left")
    by_id = by_id.select(
        "client", "container", "at", "id", "body", F.col("place.node").alias("node"),
        F.col("place.store").alias("store"), F.col("place.eid").alias("eid"), F.col("id").alias("stored_id"),
        F.when(F.col("bodies") == 1, F.col("place.body")).alias("stored_body"), F.lit(True).alias("is_read"),
        (F.col("places") > 0).alias("is_there"), F.lit(0).cast("bigint").alias("first"),
        F.lit(False).alias("unread"), F.lit(None).cast("boolean").alias("is_gone"), F.lit(False).alias("by_tag"),
    )  # fmt: skip
    return by_tag.withColumn("by_tag", F.lit(True)).unionByName(by_id)


def is_given_otherwise(given: DataFrame, is_whole: bool, now_us: int) -> DataFrame:
    """C3. `is_whole`: all that was ever stored could be read; else a message-id that is missing says nothing. `now_us`:
    which stores there are is known as of then."""
    missing = F.col("is_there").isNull()
    is_later = F.col("by_tag") & F.col("node").isNull() & (F.col("at") > now_us - SKEW_US)
    reason = (
        F.when(F.col("is_gone"), "given from a store that is no more, or could not be read")
        .when(is_later, "given from a store that may have been made since the records were landed")
        .when(
            F.col("by_tag") & missing & (F.col("eid") < F.col("first")), "given from before what the store still keeps"
        )
        .when(missing & F.col("unread"), "given from a store of which some messages could not be read")
        .when(
            ~F.col("by_tag") & missing & F.lit(not is_whole),
            "given without a tag, where not all that was ever stored can be read",
        )
        .when(F.col("is_read") == F.lit(False), "given, and stored in a form whose message-id cannot be read")
    )
    known = F.col("id").isNotNull() & F.col("stored_id").isNotNull()
    where = F.concat(
        F.lit("the client was given a message"), F.when(F.col("by_tag"), " under a tag that ").otherwise(", and ")
    )
    words = F.when(
        missing & F.col("by_tag"), F.concat(where, F.lit("names no event: "), F.coalesce("id", F.lit("no message-id")))
    )
    words = words.when(missing, F.concat(where, F.lit("no event has its message-id: "), F.col("id")))
    words = words.when(
        known & (F.col("id") != F.col("stored_id")),
        F.concat(where, F.lit("names another one: "), F.col("id"), F.lit(", where is "), F.col("stored_id")),
    )
    return _answered(given.withColumns({WHY_NOT: reason, "words": words}), "C3")


def is_given_body_stored(given: DataFrame) -> DataFrame:
    """C4, of consumers."""
    rows = given.where(F.col("body").isNotNull() & F.col("is_there"))
    unknown = F.col("stored_body").isNull()
    reason = F.when(unknown, "bodies given that are stored in a form without a checksum")
    name = F.coalesce("id", F.lit("no message-id"))
    words = F.concat(F.lit("the body that was given is not the one that is stored, of the message-id: "), name)
    wrong = F.when(F.col("body") != F.col("stored_body"), words)
    return _answered(rows.withColumns({WHY_NOT: reason, "words": wrong}), "C4")


def settled(lines: Lines, places: DataFrame, stores: DataFrame, recorded: Recorded, certain: Column) -> DataFrame:
    """One row for each container, event and state: how often its consumer said so, how often for certain, how often the
    gateways have read it, and how often its link broke. `certain`: of a line, that the gateway must have read it, and
    kept a record. Of clients that note what they settle, what they were given counts, too: they may have said
    nothing."""
    stated = lines.of("settled")
    placed = stated.join(places, "id", "left").withColumns(
        {
            "store": F.coalesce("store", F.when(F.col("places") == 1, F.col("place.store"))),
            "eid": F.coalesce("eid", F.when(F.col("places") == 1, F.col("place.eid"))),
        }
    )
    key = ["container", "store", "eid"]
    reason = F.when(F.col("transaction").isNotNull(), "settled in a transaction")
    reason = reason.when(F.col("outcome") == UNKNOWN, "settled with a state that the library chose")
    rows = placed.select(*key, F.col("outcome").alias("state"), "at", certain.alias("certain"), reason.alias(WHY_NOT))
    counted = rows.groupBy(*key, "state").agg(
        F.count("*").alias("said"), F.count_if("certain").alias("certain"), F.min("at").alias("at")
    )
    given = lines.of("received").join(stated.select("client").distinct(), "client", "left_semi").select(*key)
    known = rows.select(*key, WHY_NOT).unionByName(given, allowMissingColumns=True)
    whole = known.groupBy(*key).agg(F.max(WHY_NOT).alias("unsaid"))
    read = recorded.settled.groupBy(*key, "state").agg(F.count("*").alias("read"))
    of_said = read.join(whole.select(*key), key, "left_semi").where(~F.col("state").startswith(TRANSACTIONAL))
    both = counted.join(of_said, [*key, "state"], "full").join(whole, key, "left")
    names = F.broadcast(stores.select("store", "node"))
    both = both.join(recorded.broken, key, "left").join(names, "store", "left")
    return both.fillna(0, ["said", "certain", "read", "broken"])


def is_settled_otherwise(rows: DataFrame) -> DataFrame:
    """C5: one finding for each container and event. What a gateway has read as given back, though the client did not
    say so, may be a delivery that its library had fetched before the application asked for it."""
    unread, surplus = F.col("said") - F.col("read"), F.col("read") > F.col("said")
    may_be_broken = (unread > 0) & (unread <= F.col("broken"))
    missing = (F.col("certain") > F.col("read")) & ~may_be_broken
    reason = (
        F.when(F.col("store").isNull(), "settled without a tag, of a message-id that no event, or several, have")
        .when(F.col("unsaid").isNotNull(), F.col("unsaid"))
        .when(may_be_broken, "settled, and a record says that the link ended before that was read")
        .when((unread > 0) & ~missing, "settled, and the connection may have ended before that was read")
    )
    compared = rows.withColumn(WHY_NOT, reason)
    wrong = compared.where(F.col(WHY_NOT).isNotNull() | missing | surplus)
    by_event = wrong.groupBy("container", "store", "eid", "node", WHY_NOT).agg(
        _listed(F.when(missing, F.col("state"))).alias("said"),
        _listed(F.when(surplus, F.col("state"))).alias("read"),
        F.min("at").alias("at"),
        F.max(surplus & F.col("state").isin(*_ENDS)).alias("ends"),
    )
    of_client = F.concat(F.lit("the client said "), "said")
    of_gateway = F.concat(F.lit("the gateway has read "), "read")
    words = (
        F.when(~F.col("ends") & (F.col("said") == ""), F.lit(None))
        .when(F.col("read") == "", F.concat(of_client, F.lit(", and no outcome record has it")))
        .when(F.col("said") == "", F.concat(of_gateway, F.lit(", and the client did not say so")))
        .otherwise(F.concat(of_client, F.lit(", and "), of_gateway))
    )
    return _answered(by_event.withColumn("words", words), "C5")


def _listed(states: Column) -> Column:
    return F.array_join(F.array_sort(F.collect_set(states)), " and ")
