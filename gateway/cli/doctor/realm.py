"""What is looked at in the realm: who owns it, its nodes and topics, its groups, evidence and clocks.

Each check yields findings; `LogError` is the caller's. Blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Set

import orjson

from gateway.cli.doctor.finding import Finding, fail, not_looked_at, ok, warn
from gateway.cli.output import printable
from native_backend.journal.journal import journal_topic
from native_backend.journal.lease_records import LeaseRecords, lease_topic
from native_backend.journal.process_liveness import SystemLiveness
from native_backend.log.port import Inspection, Log, LogError, if_there
from native_backend.nodes import broken_nodes
from native_backend.nodes.group_offset import parse_projection
from native_backend.nodes.metadata import Metadata, realm_topics
from native_backend.nodes.node import Node
from native_backend.nodes.topic_settings import Wanted, faults

OWNED = "owns the realm"
"""The end of the words of a lease that a living gateway has."""
_DEADLINE_S = 10.0
_AHEAD_S = 2.0
_TAIL = 200


def lease_of(log: Log, prefix: str) -> LeaseRecords | None:
    """None: the realm was never opened."""
    records = LeaseRecords()
    with if_there():
        records.read(log, prefix, _DEADLINE_S)
        return records
    return None


def owner(log: Log, prefix: str) -> Iterator[Finding]:
    records = lease_of(log, prefix)
    if records is None:
        yield ok("lease", "the realm was never opened")
        return
    liveness = SystemLiveness()
    who = f"run {records.run} on {records.process.get('host', 'a host that is not recorded')}"
    if records.free:
        yield ok("lease", f"no gateway owns the realm; the last one was {who}" if records.run else "no owner yet")
    elif liveness.gone(records.process):
        yield warn(
            "lease", f"the owner, {who}, has ended without giving the realm back", "start a gateway: it recovers"
        )
    elif not liveness.sees(records.process):
        words = "whether it lives cannot be seen from here: ask its /readyz, or run realmgate doctor there"
        yield not_looked_at("lease", f"{who} owns the realm; {words}")
    else:
        yield ok("lease", f"{who} {OWNED}")


def clock(log: Log, prefix: str, now_s: float) -> Iterator[Finding]:
    """No record can be from the future."""
    first, end = log.control.bounds(lease_topic(prefix), 0)
    records = log.control.read_range(lease_topic(prefix), 0, max(first, end - _TAIL), _TAIL)
    times = [orjson.loads(value)["at"] / 1e6 for value in records.values if value is not None]
    stored = [at_ms / 1000 for at_ms in records.timestamps_ms]
    if not times:
        yield not_looked_at("clocks", "no gateway has written a lease record yet")
        return
    ahead_s = max(times + stored) - now_s
    if ahead_s > _AHEAD_S:
        words = f"the lease has a record from {ahead_s:.0f} s ahead of this machine's clock"
        yield fail("clocks", words, "keep the clocks of all gateways, brokers and this machine with NTP")
    else:
        yield ok("clocks", "no lease record is ahead of this machine's clock")


def nodes(log: Log, metadata: Metadata) -> tuple[list[Finding], list[Node]]:
    """With the nodes that can be used."""
    everyone = list(metadata.nodes.values())
    broken = broken_nodes.find(log, everyone, _DEADLINE_S)[1]
    findings = [
        fail("nodes", f"{printable(name)}: {wrong.detail}", wrong.remedy) for name, wrong in sorted(broken.items())
    ]
    whole = [node for node in everyone if node.name not in broken]
    if not findings:
        findings.append(ok("nodes", f"{len(everyone)} nodes have their topics"))
    return findings, whole


def broker(inspected: Inspection | LogError | None) -> Iterator[Finding]:
    if isinstance(inspected, LogError):
        yield not_looked_at("broker", str(inspected))
    elif inspected is not None:
        yield ok("broker", f"Kafka {inspected.version} or later, brokers: {inspected.brokers}")
        if inspected.risk:
            yield warn("broker", inspected.risk, "run Kafka 4.2.2: see docs/bad-worlds.md")


def _missing(log: Log, prefix: str, there: Set[str]) -> Iterator[Finding]:
    """The realm's own topics that were deleted; `ok` where its owner is of a release that makes no such topic."""
    own = realm_topics(prefix)
    if there.isdisjoint(own):
        return
    owner = lease_of(log, prefix) or LeaseRecords()
    for topic in sorted(own.keys() - there):
        if topic.removeprefix(f"{prefix}.") in owner.topics:
            words = f"{topic} is not there, though the realm was opened"
            yield fail("topics", words, "restore it from a backup; the next start makes an empty one")
        else:
            words = f"{topic} comes with the upgrade: run {owner.run} is of an earlier release, which makes none"
            yield ok("topics", words)


def topics(
    log: Log, inspected: Inspection | LogError | None, prefix: str, usable: list[Node], there: Set[str]
) -> Iterator[Finding]:
    """Those of the realm that are not there, and settings by which Kafka would delete what the realm counts on."""
    missing = [*_missing(log, prefix, there)]
    yield from missing
    if isinstance(inspected, LogError):
        yield not_looked_at("topics", f"their settings: {inspected}")
        return
    wanted = {topic: Wanted(compacted) for topic, compacted in realm_topics(prefix).items()}
    wanted |= {node.topic: Wanted(adopted=node.adopted) for node in usable}
    problems, looked_at = sum(finding.status == "FAIL" for finding in missing), 0
    for topic in [name for name in sorted(wanted) if name in there]:
        state = inspected.topics.get(topic) if inspected is not None else None
        if inspected is not None and state is None:
            yield not_looked_at("topics", f"{topic}: its settings may not be read")
        if inspected is None or state is None:
            continue
        looked_at += 1
        for fault in faults(topic, state, wanted[topic], inspected.brokers):
            problems += 1
            yield (warn if fault.grade == "risks" else fail)("topics", fault.detail, fault.remedy)
    if not problems:
        alone = inspected is not None and inspected.brokers == 1
        copies = "; one broker: a lost disk loses the realm" if alone else ""
        there_is = "all there" if wanted.keys() <= there else "the others are there"
        yield ok("topics", f"settings of {looked_at} topics keep what is stored{copies}" if inspected else there_is)


def groups(log: Log, prefix: str, metadata: Metadata, usable: list[Node]) -> Iterator[Finding]:
    """A group's offset was computed at a place of the journal that is there."""
    whole, count, problems, end = {node.name for node in usable}, 0, 0, 0
    with if_there():
        end = log.control.bounds(journal_topic(prefix), 0)[1]
    for part, durable in metadata.each_durable():
        if part.name not in whole:
            continue
        position = log.control.projected(durable.group, _DEADLINE_S).get((part.topic, part.partition))
        if position is None:
            continue
        count += 1
        journal = parse_projection(position)
        if journal is None:
            problems += 1
            words = f"{durable.group}: its offset in {part.topic} was committed by another program"
            yield warn(
                "groups", words, "find that program: the gateway does not read these offsets, and sets them again"
            )
        elif journal > end:
            problems += 1
            words = f"{durable.group}: its offset was computed at {journal} of the journal, which ends at {end}"
            yield fail("groups", words, "the journal lost its end: run realmgate reconcile before anything else")
    if not problems:
        yield ok("groups", f"{count} offsets of groups agree with the journal")


def evidence(log: Log, prefix: str) -> Iterator[Finding]:
    """The journal vouches for outcome records: those that it names are there."""
    vouched: dict[str, int] = {}
    stored: dict[str, int] = {}
    for topic in (journal_topic(prefix), f"{prefix}.outcomes"):
        try:
            first, end = log.control.bounds(topic, 0)
        except LogError as error:
            if error.failure.cause != "not-found":
                raise
            yield ok("evidence", "the realm was never opened")
            return
        for value in log.control.read_range(topic, 0, max(first, end - _TAIL), _TAIL).values:
            record = orjson.loads(value or b"null")
            if record is None:
                continue
            if "groups" in record:
                stored[record["run"]] = max(stored.get(record["run"], 0), record["n"])
            for entry in record.get("entries", ()):
                if entry["operation"] == "recorded":
                    vouched[record["run"]] = max(run[1] for run in entry["runs"])
    run = max(vouched, default="")
    kept = stored.get(run, 0)
    was_cut = first > 0 and not kept  # by retention, or the tail that was read has later runs alone
    if run and not was_cut and max(stored, default="") <= run and kept < vouched[run]:
        words = f"outcome records {kept + 1} to {vouched[run]} of run {run} are missing"
        yield fail("evidence", words, "run realmgate reconcile: it shows what is lost")
    else:
        yield ok("evidence", "the newest outcome records are those that the journal names")
