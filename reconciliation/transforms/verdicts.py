"""The fold: all that is known of one delivery (run, seq) in one row, then what is wrong with it.

Judged is what the run's evidence covers: seqs below its last `low`, or all of a run that closed in order. Above that,
what a killed run left is P5, and what a live run is doing is in flight. Where outcome records are missing, what none
speaks of cannot be judged (UNPROVEN). Classes P1-P5, A1-A3, A6, Q1.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from reconciliation.model.ranges import SEQ_BITS
from reconciliation.model.tally import TERMINAL
from reconciliation.transforms import finding_rows
from reconciliation.transforms.blocks import EXPECTED, block_of
from reconciliation.transforms.claims import FOREIGN, GIVEN_BACK, RETURNED, STORED

IN_FLIGHT = "in-flight"
DOUBLED = "doubled"
OVERWRITTEN = "overwritten"
UNPROVEN = "unproven"
INTERNAL = (IN_FLIGHT, DOUBLED, OVERWRITTEN, UNPROVEN)
"""No findings, but needed to close the balance: events of a live gateway without an answer yet; publishes that
two outcome records speak of; events whose key was changed in place; events of which the evidence is missing."""

_CLAIM = ("what", "node", "durable", "store", "eid", "at", "link", "container", "rule")
_FACT = ("what", "node", "durable", "store", "eid", "at")


def fold(accounts: DataFrame, runs: DataFrame, doubts: DataFrame) -> DataFrame:
    """One row per (run, seq): the claim, the events, the journal's `ends` and `returns` of it, of each the one that is
    nearest to the claim (`ended`, `returned`), and whether that is covered.
    `doubts`: by run, whether its outcome records are `torn` (some are missing), whether it is `in_journal`, and
    `journal_until`: what its journal holds from that time on cannot be read yet (null: all can)."""
    what = F.col("what")
    event, journal, returned = what == "event", what.startswith("journal"), what.startswith("journal return")
    claimed = ~(event | journal | (what == EXPECTED))
    rows = accounts.groupBy("run", "seq").agg(
        F.count_if(claimed).alias("claims"),
        F.min(F.when(claimed, F.struct(*_CLAIM))).alias("claim"),
        F.array_sort(F.collect_set(F.when(event, F.struct("store", "eid", "node")))).alias("places"),
        F.min(F.when(event, F.struct(*_FACT))).alias("event"),
        F.collect_list(F.when(journal & ~returned, F.struct(*_FACT, "offset"))).alias("ends"),
        F.collect_list(F.when(returned, F.struct(*_FACT, "offset"))).alias("returns"),
    )
    rows = rows.withColumns({"ended": _nearest("ends"), "returned": _nearest("returns")})
    known = rows.join(F.broadcast(runs), "run", "left").join(F.broadcast(doubts), "run", "left")
    return known.withColumn("covered", _covered())


def _fact(entry: Column) -> Column:
    """Of the journal, without where it stands there."""
    return F.struct(*(entry[name].alias(name) for name in _FACT))


def _nearest(entries: str) -> Column:
    """What the claim has, else an entry of the same event, else any; null: there is none."""

    def placed(entry: Column) -> Column:
        as_told = entry["what"] == F.concat(F.lit("journal "), "claim.what")
        far = F.when(_is_same_event(entry, F.col("claim")), F.when(as_told, 0).otherwise(1)).otherwise(2)
        return F.struct(far.alias("far"), _fact(entry).alias("fact"))

    return F.array_min(F.transform(entries, placed))["fact"]


def _is_same_event(left: Column, right: Column) -> Column:
    """Of the same durable."""
    same = [left[name].eqNullSafe(right[name]) for name in ("store", "durable", "eid")]
    return same[0] & same[1] & same[2]


def _is_more_than_one(entries: str) -> Column:
    """A journal record that stands twice under its number counts once: it says the same. Within a record nothing stands
    twice."""
    facts, offsets = (F.array_distinct(F.transform(entries, part)) for part in (_fact, lambda entry: entry["offset"]))
    return (F.size(facts) > 1) | (F.size(entries) > F.size(offsets))


def _covered() -> Column:
    closed_or_below = (F.col("state") == "closed") | (F.col("seq") < F.col("low"))
    return F.col("run").startswith(FOREIGN) | F.coalesce(closed_or_below, F.lit(False))


def verdicts(folded: DataFrame) -> DataFrame:
    """A finding for everything that is wrong with a delivery, or uncertain; most have none."""
    candidates = F.array(
        _in_flight(),
        _unproven(),
        _unreadable_end(),
        _lost_write(),
        _phantom_write(),
        _refused_but_stored(),
        _indeterminate(),
        _acknowledged_not_committed(),
        _committed_not_acknowledged(),
        _other_operation(),
        _ended_again(),
        _miscounted(),
        _returned_again(),
        _returned_untold(),
        _doubled_record(),
        _doubled_publish(),
    )
    present = F.filter(F.concat(candidates, _duplicate_writes()), lambda finding: finding["class"].isNotNull())
    findings = folded.withColumn("found", F.explode(present))
    return findings.select(
        "found.class",
        "found.node",
        "found.durable",
        "found.store",
        "found.eid",
        F.when(~F.col("run").startswith(FOREIGN), F.col("run")).alias("run"),
        F.when(~F.col("run").startswith(FOREIGN), F.col("seq")).alias("seq"),
        "claim.link",
        "claim.container",
        "claim.rule",
        "found.count",
        F.coalesce("claim.at", "event.at", "ended.at", "returned.at").alias("at"),
        "found.detail",
    )


def _finding(
    code: Column, node: Column, durable: Column, store: Column, eid: Column, count: Column, text: Column
) -> Column:
    return F.struct(
        code.cast("string").alias("class"),
        node.cast("string").alias("node"),
        durable.cast("string").alias("durable"),
        store.cast("bigint").alias("store"),
        eid.cast("bigint").alias("eid"),
        count.cast("bigint").alias("count"),
        text.alias("detail"),
    )


def _found(
    condition: Column, code: Column | str, place: Column, detail: Column | str, count: Column | None = None
) -> Column:
    """A struct whose class is null unless the condition holds. `place`: whose place is named."""
    named = F.when(F.coalesce(condition, F.lit(False)), F.lit(code))
    text = F.lit(detail) if isinstance(detail, str) else detail
    return _finding(
        named, place["node"], place["durable"], place["store"], place["eid"], F.lit(1) if count is None else count, text
    )


def _claim_is(*words: str) -> Column:
    return F.coalesce(F.col("claim.what").isin(*words), F.lit(False))


def _is_here(place: Column) -> Column:
    return (place["store"] == F.col("claim.store")) & (place["eid"] == F.col("claim.eid"))


def _is_as_claimed(fact: str) -> Column:
    return F.col(fact).isNotNull() & _is_same_event(F.col(fact), F.col("claim"))


def _told_stored() -> Column:
    return _claim_is(*STORED, "trimmed", "gone", "unseen")


def _is_in_place() -> Column:
    return F.coalesce(F.exists("places", _is_here), F.lit(False))


def _is_doubtful() -> Column:
    """Nothing that is missing in the evidence of its run says anything: outcome records are missing themselves."""
    missing = F.col("state").isNull() | (F.coalesce("torn", F.lit(0)) == 1)
    return F.col("claim").isNull() & missing & ~F.col("run").startswith(FOREIGN)


def _left_over() -> Column:
    """There is no answer yet, and the evidence does not reach this far."""
    return F.col("claim").isNull() & ~F.col("covered") & ~_is_doubtful()


def _in_flight() -> Column:
    live = F.coalesce(F.col("state") == "live", F.lit(False))
    return _found(
        F.col("event").isNotNull() & _left_over() & live, IN_FLIGHT, F.col("event"), "stored, not answered yet"
    )


def _unproven() -> Column:
    place = F.coalesce("event", "ended")
    why = (
        F.when(F.coalesce("torn", F.lit(0)) == 1, F.lit("outcome records of this run are missing"))
        .when(F.col("in_journal") == 1, F.lit("no outcome record of this run is there"))
        .otherwise(
            F.lit("no such run is known, neither by outcome records nor by the journal: find out who wrote this")
        )
    )
    what = F.when(F.col("event").isNotNull(), F.lit("events in the store; ")).otherwise(F.lit("ends in the journal; "))
    return _found(_is_doubtful() & place.isNotNull(), UNPROVEN, place, F.concat(what, why))


def _unreadable_end() -> Column:
    detail = "told as done, and the journal could not be read so far"
    return _found(_is_untold_end() & _is_pending_end(), UNPROVEN, F.col("claim"), detail)


def _lost_write() -> Column:
    lost = _claim_is(*STORED) & ~_is_in_place()
    return _found(lost, "P1", F.col("claim"), "answered stored; the store has no such event")


def _duplicate_writes() -> Column:
    """One for each store that has it once too often, under the first EID that it has there."""
    home = F.when(_is_in_place(), F.struct("claim.store", "claim.eid")).otherwise(F.struct("event.store", "event.eid"))
    others = F.filter("places", lambda place: (place["store"] != home["store"]) | (place["eid"] != home["eid"]))
    many = F.size(F.array_distinct(F.transform("places", lambda place: place["store"]))) > 1
    tags = F.transform("places", lambda place: F.concat_ws(":", place["store"], place["eid"]))
    eids = F.transform("places", lambda place: place["eid"].cast("string"))
    detail = F.when(many, F.concat(F.lit("stored under the tags "), F.concat_ws(", ", tags))).otherwise(
        F.concat(F.lit("stored at EIDs "), F.concat_ws(", ", eids))
    )

    def duplicate(store: Column) -> Column:
        there = F.filter("places", lambda place: place["store"] == store)
        first, count = there[0], F.size(F.filter(others, lambda place: place["store"] == store))
        return _finding(F.lit("P2"), first["node"], F.lit(None), store, first["eid"], count, detail)

    return F.transform(F.array_distinct(F.transform(others, lambda place: place["store"])), duplicate)


def _phantom_write() -> Column:
    known = _told_stored() | _claim_is("refused", "publish-unknown")
    unknown = ~known & F.col("covered") & ~_is_doubtful()
    elsewhere = _told_stored() & ~_is_in_place()
    detail = (
        F.when(F.col("run").startswith(FOREIGN), F.lit("its key was written by no gateway"))
        .when(elsewhere, F.concat(F.lit("its publisher was told EID "), F.col("claim.eid").cast("string")))
        .otherwise(F.lit("the evidence of its run covers its seq, but has no publish outcome for it"))
    )
    return _found(F.col("event").isNotNull() & (unknown | elsewhere), "P3", F.col("event"), detail)


def _refused_but_stored() -> Column:
    return _found(
        _claim_is("refused") & F.col("event").isNotNull(), "P4", F.col("event"), "refused to the publisher, yet stored"
    )


def _indeterminate() -> Column:
    """Answers *unknown*, and what a killed run left without an answer."""
    unknown = _claim_is("publish-unknown", "settle-unknown")
    killed = _left_over() & (F.coalesce("state", F.lit("killed")) != "live")
    settled = F.col("ended").isNotNull()
    fact = F.when(_claim_is("settle-unknown"), settled).otherwise(F.col("event").isNotNull() | settled)
    origin = F.when(unknown, F.lit("answer unknown")).otherwise(F.lit("left by a killed gateway"))
    detail = F.concat(origin, F.when(fact, F.lit(": found")).otherwise(F.lit(": not found")))
    place = F.coalesce("event", "ended")
    node, durable, store, eid = (
        F.coalesce(place[name], f"claim.{name}") for name in ("node", "durable", "store", "eid")
    )
    named = F.when(unknown | (killed & fact), F.lit("P5"))
    return _finding(named, node, durable, store, eid, F.lit(1), detail)


def _is_untold_end() -> Column:
    return _claim_is(*TERMINAL) & ~_is_as_claimed("ended")


def _is_pending_end() -> Column:
    """Its journal record was written when the outcome was sent at the latest, by the clock of the same process: if it
    is there, it may be beyond what can be read."""
    return F.coalesce(F.col("claim.at") >= F.col("journal_until"), F.lit(False))


def _acknowledged_not_committed() -> Column:
    detail = F.concat(
        F.lit("the consumer's "), F.col("claim.what"), F.lit(" was answered done; the journal has no end of it")
    )
    return _found(_is_untold_end() & ~_is_pending_end(), "A1", F.col("claim"), detail)


def _committed_not_acknowledged() -> Column:
    untold = F.col("claim").isNull() & F.col("covered") & ~_is_doubtful()
    otherwise = _told_stored() | _claim_is("other", GIVEN_BACK, "refused", "publish-unknown", *RETURNED)
    detail = F.when(F.col("claim").isNull(), F.lit("ended in the journal; no outcome record speaks of it")).otherwise(
        F.concat(F.lit("ended in the journal; its outcome record says: "), F.col("claim.what"))
    )
    return _found(F.col("ended").isNotNull() & (untold | otherwise | _is_untold_end()), "A2", F.col("ended"), detail)


def _other_operation() -> Column:
    differs = _is_as_claimed("ended") & (F.col("ended.what") != F.concat(F.lit("journal "), "claim.what"))
    detail = F.concat(F.lit("told "), "claim.what", F.lit(", in the "), "ended.what")
    return _found(_claim_is(*TERMINAL) & differs, "A3", F.col("claim"), detail)


def _ended_again() -> Column:
    """What the journal has beside the end of the claim: of another event (A2), another end of the same one (A3), or
    the same once more (A4)."""
    elsewhere = F.filter("ends", lambda end: ~_is_same_event(end, F.col("ended")))
    otherwise = F.filter("ends", lambda end: end["what"] != F.col("ended.what"))
    code = F.when(F.size(elsewhere) > 0, "A2").when(F.size(otherwise) > 0, "A3").otherwise("A4")
    place = F.coalesce(F.get(F.transform(elsewhere, _fact), F.lit(0)), F.col("ended"))
    whats = F.concat_ws(", ", F.array_sort(F.array_distinct(F.transform("ends", lambda end: end["what"]))))
    eid = F.when(F.size(elsewhere) > 0, F.concat(F.lit(", also of EID "), F.col("ended.eid").cast("string")))
    times = F.concat(F.lit(" "), F.size("ends").cast("string"), F.lit(" times by one delivery"))
    detail = F.concat(whats, times, F.coalesce(eid, F.lit("")))
    return _found(_is_more_than_one("ends"), code, place, detail)


def _miscounted() -> Column:
    """A return that was told as done is in the journal, counted as its rule says."""
    counted = _is_as_claimed("returned") & (F.col("returned.what") == F.concat(F.lit("journal "), "claim.what"))
    detail = F.when(
        _is_as_claimed("returned"), F.concat(F.lit("told "), "claim.what", F.lit(", in the "), "returned.what")
    )
    nowhere = F.concat(F.lit("told "), "claim.what", F.lit("; the journal has no return of it"))
    wrong = _claim_is(*RETURNED) & ~counted & ~_is_pending_end() & F.col("ended").isNull()
    return _found(wrong, "A6", F.col("claim"), F.coalesce(detail, nowhere))


def _returned_again() -> Column:
    """Each counts: with a failed attempt too many the event is given up too early."""
    whats = F.array_sort(F.array_distinct(F.transform("returns", lambda entry: entry["what"])))
    times = F.concat(F.lit(" "), F.size("returns").cast("string"), F.lit(" times by one delivery"))
    detail, surplus = F.concat(F.concat_ws(", ", whats), times), F.size("returns") - 1
    return _found(_is_more_than_one("returns"), "A6", F.col("returned"), detail, surplus)


def _returned_untold() -> Column:
    """A return in the journal that the outcome record does not have. An end that it has, and the journal not: A1."""
    untold = F.col("claim").isNull() & F.col("covered") & ~_is_doubtful()
    otherwise = _told_stored() | _claim_is("other", "refused", "publish-unknown")
    beside = _claim_is(*TERMINAL) & _is_as_claimed("ended")
    detail = F.when(F.col("claim").isNull(), F.lit("no outcome record speaks of it")).otherwise(
        F.concat(F.lit("its outcome record says: "), F.col("claim.what"))
    )
    words = F.concat("returned.what", F.lit(": "), detail)
    return _found(F.col("returned").isNotNull() & (untold | otherwise | beside), "A6", F.col("returned"), words)


def _doubled_record() -> Column:
    detail = F.concat(F.col("claims").cast("string"), F.lit(" outcome records speak of this delivery"))
    return _found(F.col("claims") > 1, "Q1", F.col("claim"), detail, F.col("claims") - 1)


def _doubled_publish() -> Column:
    doubled = (F.col("claims") > 1) & _claim_is(*STORED, "trimmed")
    return _found(doubled, DOUBLED, F.col("claim"), "", F.col("claims") - 1)


def overwritten(findings: DataFrame) -> DataFrame:
    """A lost write whose EID is there after all, under a key that no peer published (P3), is not lost as well: the key
    was changed in place. Where the EID has an event that was published it is lost: the EID was given twice."""
    same_place = Window.partitionBy("store", "eid")
    phantom = F.max(F.col("class") == "P3").over(same_place)
    instead = F.when((F.col("class") == "P1") & phantom, F.lit(OVERWRITTEN)).otherwise(F.col("class"))
    return findings.withColumn("class", instead)


def explained(findings: DataFrame, lost: DataFrame) -> DataFrame:
    """Lost writes say what became of their store, where it is gone. `lost`: store, why."""
    whys = findings.join(F.broadcast(lost), "store", "left")
    detail = F.when(F.col("class") == "P1", F.concat(F.lit("answered stored; "), "why"))
    return whys.withColumn("detail", F.coalesce(detail, "detail")).select(*findings.columns)


def summed(findings: DataFrame) -> DataFrame:
    """What could not be judged, by run and store: as a finding (Q1), and for the balance."""
    unproven = F.col("class") == UNPROVEN
    groups = findings.where(unproven).groupBy("run", "store", "node", "durable", "detail")
    counted = groups.agg(
        F.count("*").alias("count"), F.min("seq").alias("seq"), F.min("eid").alias("eid"), F.min("at").alias("at")
    )
    both = counted.withColumn("class", F.explode(F.array(F.lit("Q1"), F.lit(UNPROVEN))))
    worded = both.withColumn("detail", F.concat_ws(" ", "count", "detail"))
    return findings.where(~unproven).unionByName(worded, allowMissingColumns=True)


def missing_records(accounts: DataFrame, runs: DataFrame) -> DataFrame:
    """Q1 for each suspect block: the seqs below the run's `low` that no outcome record speaks of."""
    what = F.col("what")
    claimed = ~(what.startswith("journal") | what.isin("event", EXPECTED))
    place = F.when(claimed, F.col("seq"))
    blocks = accounts.groupBy("run", block_of("seq")).agg(F.collect_set(place).alias("present"))
    first = F.greatest(F.shiftleft("block", SEQ_BITS), F.col("base"))
    last = F.least(F.shiftleft(F.col("block") + 1, SEQ_BITS), F.col("low")) - 1
    inside = blocks.join(F.broadcast(runs), "run", "inner").where(last >= first)
    missing = inside.select("run", F.array_except(F.sequence(first, last), "present").alias("missing"))
    text = F.concat_ws(" ", F.size("missing"), F.lit("deliveries without outcome record, seqs"), F.array_min("missing"),
                       F.lit("to"), F.array_max("missing"))  # fmt: skip
    rows, first_missing = missing.where(F.size("missing") > 0), F.array_min("missing")
    return finding_rows.findings(rows, "Q1", text, seq=first_missing, count=F.size("missing"))
