"""`/metrics`: numbers that are counted anyway, read for each request (docs/how-to/watch-a-gateway.md).

Read between turns, a family or a part of one at a time, so a page is not of one instant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, TypeVar

from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from gateway.admin.exposition import Family, histogram, single
from gateway.admin.problems import Problem
from gateway.config.limits import (
    METRIC_DURABLES,
    METRIC_MORE_DURABLES,
    METRIC_MORE_NODES,
    METRIC_NODES,
    METRIC_PROBLEMS,
)
from gateway.evidence.counters import CLASSES, NO_CLASS, OTHER, TEMPORARY
from gateway.transactions.transaction import ENDS
from native_backend.metrics import DurableMetrics, NodeFigures, RealmMetrics, known_sum, oldest

if TYPE_CHECKING:
    from gateway.reload.certificates import Certificates
    from gateway.reload.tables import TableReload
    from gateway.session.gateway import Gateway

_STEP_CONNECTIONS = 100
_NEARLY = 0.8
_STUCK_S = 60.0
_DURABLE = ("node", "durable", "partition")
_MESSAGES = "Messages of a node: of a queue those that have not ended, of a channel all that it keeps."
_OLDEST = "How long ago the oldest message of a node was stored; 0: it has none."
_PROCESS = ProcessCollector(registry=None)
Parts = Iterator[Family | Metric | None]
_Store = TypeVar("_Store", DurableMetrics, NodeFigures)


def of_gateway(gateway: Gateway, ready: bool) -> Parts:
    """Connections, links, credit, and the outcomes that peers were sent."""
    counters, tables, limits = gateway.outcomes.counters, gateway.tables, gateway.limits
    yield Family(
        "realmgate_info",
        "gauge",
        "What runs: constant 1.",
        ("run", "realm", "profile", "tables"),
        [((gateway.realm.run, gateway.realm.kind, tables.profile, tables.digest), 1)],
    )
    yield single("realmgate_ready", "gauge", "1 while /health answers 200.", ready)
    yield single("realmgate_connections", "gauge", "Connections.", len(gateway.connections))
    yield single("realmgate_connections_limit", "gauge", "Limit of connections.", limits.connections)
    half_open = len(gateway.connections) - gateway.opened
    yield single("realmgate_half_open_connections", "gauge", "Of them, those without an open frame.", half_open)
    waiting = gateway.arrivals.waiting
    yield single("realmgate_waiting_connections", "gauge", "New ones that wait for their turn.", waiting)
    about = "New connections that had to wait for their turn."
    yield single("realmgate_delayed_connections", "counter", about, gateway.arrivals.delayed)
    yield single("realmgate_links", "gauge", "Links that are attached.", gateway.links)
    yield single("realmgate_links_limit", "gauge", "Limit of links.", limits.links)
    about = "Stores that are read for consumers: on Kafka each has a client of its own."
    yield single("realmgate_stores_read", "gauge", about, gateway.shares.stores_read.used)
    yield single("realmgate_stores_read_limit", "gauge", "Limit of them.", limits.stores_read)
    yield single("realmgate_transactions_open", "gauge", "Transactions declared and not ended.", gateway.transactions)
    ended = [((end,), float(gateway.transactions_ended[end])) for end in ENDS]
    yield Family("realmgate_transactions_ended", "counter", "Transactions by how they ended.", ("end",), ended)
    yield Family(
        "realmgate_deliveries",
        "counter",
        "Deliveries that have their outcome; in: from publishers, out: to consumers.",
        ("direction", "node", "outcome"),
        [*counters.deliveries.items()],
    )
    yield Family(
        "realmgate_errors",
        "counter",
        "Outcomes that differ from what the peer asked for; code: the log's own, or the realm's answer.",
        ("condition", "code", "class", "rule", "node"),
        [*counters.errors.items()],
    )
    about = "Deliveries that a rule of the tables decided about: what to ask of the realm, and what its answer means."
    yield Family("realmgate_rule_decisions", "counter", about, ("table", "rule"), [*counters.rules.items()])
    by_class = Counter(dict.fromkeys(CLASSES, 0))  # from 0 on: a rate needs a sample before the first error
    for error, count in counters.errors.items():
        by_class[error.klass or NO_CLASS] += count
    about = "The same, by class only."
    yield Family(
        "realmgate_told_errors", "counter", about, ("class",), [((klass,), n) for klass, n in by_class.items()]
    )
    faults = [((name,), float(count)) for name, count in gateway.faults.items()]
    yield Family("realmgate_peer_faults", "counter", "Peers that broke the protocol, by kind.", ("fault",), faults)
    yield from _under_way(gateway)


def _under_way(gateway: Gateway) -> Parts:
    credit, limits = gateway.credit, gateway.limits
    yield single("realmgate_credit_granted", "gauge", "Credit that publishers have or use.", credit.granted)
    yield single("realmgate_credit_limit", "gauge", "Credit of all publishers together.", limits.in_flight)
    yield single("realmgate_deliveries_open", "gauge", "Deliveries without an outcome, at most.", gateway.outcomes.open)
    yield single("realmgate_in_flight_bytes", "gauge", "Messages that wait for the realm.", gateway.in_flight_bytes)
    about = "Octets in flight of all peers; who has more than its share of them is not read."
    yield single("realmgate_in_flight_limit_bytes", "gauge", about, limits.in_flight_bytes)
    about = "Users, and addresses without a login, whose sockets are not read: more of theirs waits than their share."
    yield single("realmgate_held_back_holders", "gauge", about, len(gateway.waiting_bytes))
    about = "Published messages outside of transactions, from the turn that read the transfer to the realm's answer."
    yield histogram("realmgate_accept_seconds", about, gateway.accept_seconds)
    about = "Deliveries settled outside of transactions, from the turn that read the disposition until it is stored."
    yield histogram("realmgate_settle_seconds", about, gateway.settle_seconds)
    about = "Transactions that were to commit, from the turn that read the discharge to the realm's answer."
    yield histogram("realmgate_commit_seconds", about, gateway.commit_seconds)
    yield single("realmgate_transaction_bytes", "gauge", "Messages in transactions.", gateway.transaction_bytes)
    unsettled = 0
    for at, connection in enumerate([*gateway.connections], 1):
        unsettled += sum(len(link.link.unsettled) for link in connection.consuming)
        if at % _STEP_CONNECTIONS == 0:
            yield None
    yield single("realmgate_unsettled_deliveries", "gauge", "Deliveries that consumers have not settled.", unsettled)


def of_problems(open_problems: list[Problem]) -> Parts:
    """Those that there are now: nothing where all is well. The first of each kind with what they are about."""
    counted: Counter[tuple[str, str]] = Counter()
    for problem in open_problems:
        key = (problem.kind, problem.about)
        counted[key if key in counted or len(counted) < METRIC_PROBLEMS else (problem.kind, OTHER)] += 1
    samples = [(key, float(count)) for key, count in counted.items()]
    about = "What is wrong now, by kind, and the node or alarm that it is about; /health says what to do."
    yield Family("realmgate_problem", "gauge", about, ("kind", "about"), samples)


def of_reload(reload: TableReload) -> Parts:
    results = [(("done",), float(reload.done)), (("refused",), float(reload.refused))]
    yield Family("realmgate_reloads", "counter", "Tables loaded again, by result.", ("result",), results)
    about = "0 when the tables on disk were refused; the previous ones stay active."
    yield single("realmgate_reload_last_successful", "gauge", about, not reload.problems)
    about = "What is wrong with the tables on disk; /health lists it."
    yield single("realmgate_reload_problems", "gauge", about, len(reload.problems))
    about = "When tables were loaded again last; 0: not in this run."
    yield single("realmgate_reload_last_success_timestamp_seconds", "gauge", about, reload.done_us / 1e6)


def of_certificates(certificates: Certificates | None) -> Parts:
    samples = [((name,), end_s) for name, end_s in (certificates.ends.items() if certificates is not None else ())]
    about = "When the first certificate of a file ends, by its field of the section tls; nothing without TLS."
    yield Family("realmgate_certificate_end_timestamp_seconds", "gauge", about, ("file",), samples)


def of_realm(figures: RealmMetrics, lost: bool, records: int) -> Parts:
    """Lease, journal, evidence, memory. `records`: of evidence, handed to the log."""
    yield single("realmgate_lease_held", "gauge", "1 while events may be given out.", figures.lease_held)
    yield single("realmgate_realm_lost", "gauge", "1 when another gateway has taken over the realm.", lost)
    about = "Transactions of the journal, from their beginning until they are stored."
    yield histogram("realmgate_journal_transaction_seconds", about, figures.journal_seconds)
    yield single("realmgate_journal_records", "counter", "Journal records that are stored.", figures.journal_records)
    about = "Runs of published messages, from hand-over to the log until they are stored."
    yield histogram("realmgate_publish_append_seconds", about, figures.publish_seconds)
    about = "Evidence records, from hand-over to the log until they are stored."
    yield histogram("realmgate_evidence_append_seconds", about, figures.evidence_seconds)
    yield single("realmgate_evidence_records", "counter", "Outcome records handed to the log.", records)
    about = "Evidence records that are not stored, for good."
    yield single("realmgate_evidence_failed", "counter", about, figures.evidence_failed)
    yield single("realmgate_evidence_pending", "gauge", "Evidence records under way.", figures.evidence_pending)
    yield single("realmgate_control_pending", "gauge", "Control work that waits or runs.", figures.control_pending)
    yield single("realmgate_event_memory_bytes", "gauge", "Raw events in memory.", figures.held_bytes)
    yield single("realmgate_event_memory_limit_bytes", "gauge", "Their bound.", figures.held_bytes_max)
    for name, about, counts in (
        ("retries", "Control calls to the log that were asked again, by code.", figures.retries.asked_again),
        ("retries_given_up", "Those that failed in the end.", figures.retries.given_up),
    ):
        samples = [((code,), float(count)) for code, count in [*counts.items()]]
        yield Family(f"realmgate_control_{name}", "counter", about, ("code",), samples)
    letters = [(key, float(count)) for key, count in figures.dead_letters.items()]
    about = "Messages that became dead letters, by the node that they were in."
    yield Family("realmgate_dead_letters", "counter", about, ("node", "cause"), letters)
    alarms = [((name,), float(count)) for name, count in figures.alarms.items()]
    yield Family("realmgate_alarms", "counter", "What an operator has to look at.", ("alarm",), alarms)


def of_durables(figures: RealmMetrics) -> Parts:
    """The first `METRIC_DURABLES`, and of the rest the first `METRIC_MORE_DURABLES` whose consumers leave messages.
    Those beyond are one, of their sums."""
    shown: list[DurableMetrics] = []
    beyond: dict[tuple[str, str], list[DurableMetrics]] = {}
    for durable in figures.durables():
        if durable is not None and len(shown) < METRIC_DURABLES:
            shown.append(durable)
        elif durable is not None:
            beyond.setdefault((durable.node, durable.durable), []).append(durable)
        yield None
    named, others = _with_names(beyond.values(), _is_stuck, METRIC_MORE_DURABLES)
    shown += named
    if others:
        shown.append(_sum(others))
    counted = [(metrics, metrics.counts) for metrics in shown if metrics.counts is not None]
    yield _durable("consumers", "Links on it.", [(metrics, metrics.links) for metrics in shown])
    about = "Every event below is settled, expired or given up."
    yield _durable("low_eid", about, [(metrics, metrics.low) for metrics in shown])
    about = "Messages: those that wait, are delayed or unsettled."
    yield _durable("stored_events", about, [(metrics, counts.stored) for metrics, counts in counted])
    about = "Messages with a consumer, or in its transaction."
    yield _durable("unsettled_events", about, [(metrics, counts.unsettled) for metrics, counts in counted])
    about = "Messages that are to be given now."
    yield _durable("waiting_events", about, [(metrics, counts.available) for metrics, counts in counted])
    about = "Messages that are not to be given yet."
    yield _durable("delayed_events", about, [(metrics, counts.delayed) for metrics, counts in counted])
    ages = [(metrics, metrics.oldest_s) for metrics in shown if metrics.oldest_s is not None]
    yield _durable("oldest_message_age_seconds", "How long ago its oldest message was stored; 0: it has none.", ages)
    about = "Unsettled events below settled ones: they hold the low-water mark back."
    yield _durable("hole_events", about, [(metrics, metrics.hole) for metrics in shown])
    about = "Ranges of settled events above the mark."
    yield _durable("settled_ranges", about, [(metrics, metrics.ranges) for metrics in shown])
    about = "Stores without numbers of messages: still being counted, or their topic cannot be read."
    yield single("realmgate_stores_counting", "gauge", about, figures.depths.counting)


def _is_stuck(stores: list[DurableMetrics]) -> bool:
    """For a minute its consumers have left a message in one of them, or one keeps an event and settles later ones."""
    for store in stores:
        waiting = store.counts.available if store.counts is not None else 0
        if store.links and (store.oldest_s or 0) >= _STUCK_S and (waiting or store.hole):
            return True
    return False


def _with_names(
    beyond: Iterable[list[_Store]], is_named: Callable[[list[_Store]], bool], count: int
) -> tuple[list[_Store], list[_Store]]:
    """All stores of the first `count` nodes, or durables, that are to have their names; the other ones."""
    named, others, left = list[_Store](), list[_Store](), count
    for stores in beyond:
        if left and is_named(stores):
            named += stores
            left -= 1
        else:
            others += stores
    return named, others


def _durable(name: str, about: str, values: Sequence[tuple[DurableMetrics, float]]) -> Family:
    samples = [(_names(metrics), float(value)) for metrics, value in values]
    return Family(f"realmgate_durable_{name}", "gauge", about, _DURABLE, samples)


def _names(metrics: DurableMetrics) -> tuple[str, str, str]:
    return metrics.node, metrics.durable, OTHER if metrics.partition < 0 else str(metrics.partition)


def _sum(others: list[DurableMetrics]) -> DurableMetrics:
    counts = [other.counts for other in others if other.counts is not None]
    return DurableMetrics(
        node=OTHER,
        durable=OTHER,
        partition=-1,
        links=sum(other.links for other in others),
        low=min(other.low for other in others),
        counts=reduce(add, counts) if len(counts) == len(others) else None,
        hole=sum(other.hole for other in others),
        ranges=sum(other.ranges for other in others),
        oldest_s=oldest(other.oldest_s for other in others),
    )


def of_nodes(figures: RealmMetrics) -> Parts:
    """The nodes of the first `METRIC_NODES` stores, and of the rest the first `METRIC_MORE_NODES` nodes that are nearly
    full. Those beyond are one, of their sums, and so are all temporary ones."""
    shown: dict[tuple[str, str], NodeFigures] = {}
    beyond: dict[str, list[NodeFigures]] = {}
    whole: set[str] = set()  # nodes that are shown: with all of their stores

    def show(names: tuple[str, str], node: NodeFigures) -> None:
        shown[names] = _together(shown[names], node) if names in shown else node

    for node in figures.nodes():
        yield None
        if node is not None and node.temporary:
            show((TEMPORARY, OTHER), node)
        elif node is not None and (node.node in whole or (node.node not in beyond and len(shown) < METRIC_NODES)):
            whole.add(node.node)
            show((node.node, str(node.partition)), node)
        elif node is not None:
            beyond.setdefault(node.node, []).append(node)
    named, others = _with_names(beyond.values(), _is_nearly_full, METRIC_MORE_NODES)
    for node in named:
        show((node.node, str(node.partition)), node)
    for node in others:
        show((OTHER, OTHER), replace(node, events_max=0, bytes_max=0) if node.partition else node)
    columns: tuple[tuple[str, str, Callable[[NodeFigures], float | None]], ...] = (
        ("events", _MESSAGES, lambda store: store.stored),
        ("bytes", "Octets of a node with a capacity.", lambda store: store.size_bytes),
        ("events_limit", "Messages that all its partitions take; 0: any number.", lambda store: store.events_max),
        ("limit_bytes", "Octets that all its partitions take; 0: any number.", lambda store: store.bytes_max),
        ("oldest_message_age_seconds", _OLDEST, lambda store: store.oldest_s),
    )
    for name, about, number in columns:
        samples = [(names, float(value)) for names, store in shown.items() if (value := number(store)) is not None]
        yield Family(f"realmgate_node_{name}", "gauge", about, ("node", "partition"), samples)


def _is_nearly_full(stores: list[NodeFigures]) -> bool:
    """The stores of a node share its capacity."""
    events, octets = (sum(store.stored or 0 for store in stores), sum(store.size_bytes or 0 for store in stores))
    pairs = ((events, stores[0].events_max), (octets, stores[0].bytes_max))
    return any(limit and held >= _NEARLY * limit for held, limit in pairs)


def _together(first: NodeFigures, other: NodeFigures) -> NodeFigures:
    return replace(
        first,
        stored=known_sum((first.stored, other.stored)),
        size_bytes=known_sum((first.size_bytes, other.size_bytes)),
        events_max=first.events_max + other.events_max,
        bytes_max=first.bytes_max + other.bytes_max,
        oldest_s=oldest((first.oldest_s, other.oldest_s)),
    )


def of_process() -> Parts:
    """Memory, processor, file descriptors: `process_*`, as everywhere."""
    yield from _PROCESS.collect()
