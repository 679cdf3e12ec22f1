"""`/metrics`: numbers that are counted anyway, read when somebody asks (docs/how-to/watch-a-gateway.md).

Read between turns, a family or a part of one at a time, so a page is not of one instant.
May import: `gateway`, `native_backend`, prometheus-client.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from gateway.admin.families import Family, histogram, single
from gateway.limits import METRIC_DURABLES, METRIC_NODES
from gateway.tally import OTHER
from native_backend.figures import DurableFigures, Figures

if TYPE_CHECKING:
    from gateway.gateway import Gateway
    from gateway.reload import Reload

_STEP_CONNECTIONS = 100
_DURABLE = ("node", "durable", "partition")
_PROCESS = ProcessCollector(registry=None)
Parts = Iterator[Family | Metric | None]


def of_gateway(gateway: Gateway, ready: bool) -> Parts:
    """Connections, links, credit, and what peers were told."""
    tally, tables, limits = gateway.outcomes.tally, gateway.tables, gateway.limits
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
    yield single("realmgate_links", "gauge", "Links that are attached.", gateway.links)
    yield single("realmgate_links_limit", "gauge", "Limit of links.", limits.links)
    yield single("realmgate_transactions_open", "gauge", "Transactions declared and not ended.", gateway.transactions)
    yield Family(
        "realmgate_deliveries",
        "counter",
        "Deliveries that have their outcome; in: from publishers, out: to consumers.",
        ("direction", "node", "outcome"),
        [*tally.deliveries.items()],
    )
    yield Family(
        "realmgate_errors",
        "counter",
        "Errors that peers were told, of deliveries and links; code: the log's own, or the realm's answer.",
        ("condition", "code"),
        [*tally.errors.items()],
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
    about = "Where reading from publishers pauses."
    yield single("realmgate_in_flight_limit_bytes", "gauge", about, limits.in_flight_bytes)
    yield single("realmgate_transaction_bytes", "gauge", "Messages in transactions.", gateway.transaction_bytes)
    unsettled = 0
    for at, connection in enumerate([*gateway.connections], 1):
        unsettled += sum(len(link.link.unsettled) for link in connection.consuming)
        if at % _STEP_CONNECTIONS == 0:
            yield None
    yield single("realmgate_unsettled_deliveries", "gauge", "Deliveries that consumers have not settled.", unsettled)


def of_reload(reload: Reload) -> Parts:
    results = [(("done",), float(reload.done)), (("refused",), float(reload.refused))]
    yield Family("realmgate_reloads", "counter", "Tables loaded again, by result.", ("result",), results)
    about = "0 when the tables on disk were refused; those before stay in force."
    yield single("realmgate_reload_last_successful", "gauge", about, not reload.problems)
    about = "What is wrong with the tables on disk; /health lists it."
    yield single("realmgate_reload_problems", "gauge", about, len(reload.problems))
    about = "When tables were loaded again last; 0: not in this run."
    yield single("realmgate_reload_last_success_timestamp_seconds", "gauge", about, reload.done_us / 1e6)


def of_realm(figures: Figures, lost: bool, records: int) -> Parts:
    """Lease, journal, evidence, memory. `records`: of evidence, handed to the log."""
    yield single("realmgate_lease_held", "gauge", "1 while events may be given out.", figures.lease_held)
    yield single("realmgate_realm_lost", "gauge", "1 when another gateway has taken the realm over.", lost)
    about = "Transactions of the journal, from their beginning until they are stored."
    yield histogram("realmgate_journal_transaction_seconds", about, figures.journal_seconds)
    yield single("realmgate_journal_records", "counter", "Journal records that are stored.", figures.journal_records)
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
    alarms = [((name,), float(count)) for name, count in figures.alarms.items()]
    yield Family("realmgate_alarms", "counter", "What an operator has to look at.", ("alarm",), alarms)


def of_durables(figures: Figures) -> Parts:
    """The first `METRIC_DURABLES`; those beyond are one, of their sums."""
    shown: list[DurableFigures] = []
    others: list[DurableFigures] = []
    for found in figures.durables():
        if found is not None:
            (shown if len(shown) < METRIC_DURABLES else others).append(found)
        yield None
    if others:
        shown.append(_sum(others))
    names = [_names(one) for one in shown]

    def family(name: str, about: str, values: list[int]) -> Family:
        samples = [(names[at], float(value)) for at, value in enumerate(values)]
        return Family(f"realmgate_durable_{name}", "gauge", about, _DURABLE, samples)

    yield family("consumers", "Links on it.", [one.links for one in shown])
    yield family("low_eid", "Every event below is settled, expired or given up.", [one.low for one in shown])
    yield family("unsettled_events", "Given and not settled, or to be given again.", [one.unsettled for one in shown])
    about = "Not settled, at the bottom, while events above are: what holds the mark back."
    yield family("hole_events", about, [one.hole for one in shown])
    yield family("settled_ranges", "Ranges of settled events above the mark.", [one.ranges for one in shown])
    known = [(_names(one), float(one.waiting)) for one in shown if one.waiting is not None]
    about = "Not given to anybody yet, as of some seconds ago."
    yield Family("realmgate_durable_waiting_events", "gauge", about, _DURABLE, known)


def _names(one: DurableFigures) -> tuple[str, str, str]:
    return one.node, one.durable, OTHER if one.partition < 0 else str(one.partition)


def _sum(others: list[DurableFigures]) -> DurableFigures:
    waiting = [one.waiting for one in others if one.waiting is not None]
    return DurableFigures(
        node=OTHER,
        durable=OTHER,
        partition=-1,
        links=sum(one.links for one in others),
        low=min(one.low for one in others),
        unsettled=sum(one.unsettled for one in others),
        waiting=sum(waiting) if waiting else None,
        hole=sum(one.hole for one in others),
        ranges=sum(one.ranges for one in others),
    )


def of_capacities(figures: Figures) -> Parts:
    found = [*figures.capacities()][:METRIC_NODES]
    columns = (
        ("events", "Events of a node with a capacity.", [one.events for one in found]),
        ("events_limit", "How many it takes; 0: any number.", [one.events_max for one in found]),
        ("bytes", "Octets of a node with a capacity.", [one.size_bytes for one in found]),
        ("limit_bytes", "How many it takes; 0: any number.", [one.bytes_max for one in found]),
    )
    for name, about, values in columns:
        samples = [((one.node, str(one.partition)), float(value)) for one, value in zip(found, values, strict=True)]
        yield Family(f"realmgate_node_{name}", "gauge", about, ("node", "partition"), samples)


def of_process() -> Parts:
    """Memory, processor, file descriptors: `process_*`, as everywhere."""
    yield from _PROCESS.collect()
