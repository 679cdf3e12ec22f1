"""Fixed facts of one afternoon: what a gateway answers, as its admin pages write it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from console.facts.gateway import Gateway
from console.facts.history import History, Reading, asked_of
from console.pages.view import View
from gateway.verdict.answers import read_health, read_page
from gateway.verdict.history import HistoryRow, history_row
from gateway.verdict.samples import read_samples

NOW_US = 1_795_560_852_000_000  # 2026-11-24T22:54:12Z
SECOND_US = 1_000_000
RUN = "1a20fc42cc7-467d"
DIGEST = "2e9933ecde8a86e9cba0bb41a388b384"
UNKNOWN = 'class="fatal",code="",condition="amqp:not-found",node=""'
FULL = 'class="transient",code="capacity-reached",condition="amqp:resource-limit-exceeded",node="small"'
METRICS = f"""# HELP realmgate_info What runs: constant 1.
# TYPE realmgate_info gauge
realmgate_info{{profile="extended",realm="embedded",run="{RUN}",tables="{DIGEST}"}} 1.0
realmgate_connections 1.0
realmgate_links 2.0
realmgate_transactions_open 1.0
realmgate_transactions_ended_total{{end="committed"}} 3.0
realmgate_transactions_ended_total{{end="expired"}} 1.0
realmgate_transaction_bytes 2048.0
realmgate_deliveries_total{{direction="in",node="small",outcome="rejected"}} 3.0
realmgate_deliveries_total{{direction="in",node="small",outcome="accepted"}} 2.0
realmgate_errors_total{{{UNKNOWN},rule="attach.refuse-an-unknown-node"}} 1.0
realmgate_errors_total{{{FULL},rule="published.capacity-reached-rejected"}} 3.0
realmgate_rule_decisions_total{{rule="publish-mixed",table="publish"}} 5.0
realmgate_rule_decisions_total{{rule="stored-accepted",table="published"}} 2.0
realmgate_peer_faults_total{{fault="failed-login"}} 1.0
realmgate_dead_letters_total{{node="orders",cause="rejected"}} 4.0
realmgate_control_retries_total{{code="NOT_COORDINATOR"}} 7.0
realmgate_control_retries_given_up_total{{code="NOT_COORDINATOR"}} 1.0
realmgate_durable_consumers{{durable="queue",node="small",partition="0"}} 1.0
realmgate_durable_stored_events{{durable="queue",node="small",partition="0"}} 2.0
realmgate_durable_waiting_events{{durable="queue",node="small",partition="0"}} 1.0
realmgate_durable_unsettled_events{{durable="queue",node="small",partition="0"}} 1.0
realmgate_durable_delayed_events{{durable="queue",node="small",partition="0"}} 0.0
realmgate_durable_hole_events{{durable="queue",node="small",partition="0"}} 6.0
realmgate_durable_low_eid{{durable="queue",node="small",partition="0"}} 11.0
realmgate_durable_settled_ranges{{durable="queue",node="small",partition="0"}} 1.0
realmgate_node_events{{node="small",partition="0"}} 2.0
realmgate_node_events_limit{{node="small",partition="0"}} 2.0
realmgate_node_events{{node="orders",partition="0"}} 40.0
realmgate_node_events{{node="orders",partition="1"}} 2.0
realmgate_node_events_limit{{node="orders",partition="0"}} 0.0
realmgate_node_events_limit{{node="orders",partition="1"}} 0.0
realmgate_node_oldest_message_age_seconds{{node="orders",partition="0"}} 90.0
realmgate_node_oldest_message_age_seconds{{node="orders",partition="1"}} 7200.0
realmgate_node_oldest_message_age_seconds{{node="small",partition="0"}} 0.0
realmgate_durable_oldest_message_age_seconds{{durable="queue",node="small",partition="0"}} 61.0
realmgate_commit_seconds_bucket{{le="0.025"}} 3.0
realmgate_commit_seconds_bucket{{le="0.25"}} 4.0
realmgate_commit_seconds_bucket{{le="+Inf"}} 4.0
realmgate_accept_seconds_bucket{{le="0.001"}} 50.0
realmgate_accept_seconds_bucket{{le="0.01"}} 98.0
realmgate_accept_seconds_bucket{{le="0.1"}} 100.0
realmgate_accept_seconds_bucket{{le="+Inf"}} 100.0
process_start_time_seconds {NOW_US / 1e6 - 600}
process_resident_memory_bytes 5.578752e+07
"""
_NONE: dict[str, Any] = dict.fromkeys(
    (
        "user", "container", "address", "node", "link", "direction", "durable", "condition", "class", "rule",
        "outcome", "answer", "native", "fault", "text", "remedy", "delivery",
    )
)  # fmt: skip


def health(**other: Any) -> dict[str, Any]:
    return {
        "state": "ready",
        "run": RUN,
        "problems": [],
        "warnings": [],
        "realm": {"kind": "embedded", "lease_held": True, "taken_over": False},
        "tables": {"digest": DIGEST, "profile": "extended"},
        "reload": {"problems": [], "last_done_us": None},
        "evidence": {"failed": 0, "pending": 0},
        "connections": 1,
        "links": 2,
        **other,
    }


def error(number: int, what: str, seconds_ago: float, **other: Any) -> dict[str, Any]:
    at_us = NOW_US - int(seconds_ago * SECOND_US)
    return {
        **_NONE,
        "id": f"{RUN}.{number}",
        "what": what,
        "first_us": at_us,
        "at_us": at_us,
        "count": 1,
        "more": 0,
        **other,
    }


MISSPELT = error(
    1, "attach", 200, user="shop", container="shop-batch-1", address="10.20.4.17", node="oders", link="to-oders",
    direction="publish", condition="amqp:not-found", rule="attach.refuse-an-unknown-node",
    text="refuse-an-unknown-node", remedy="there is no node oders: correct the address, or create it",
)  # fmt: skip
REFUSED = error(
    2, "delivery", 100, user="erp", container="erp-export-1", address="10.20.8.12", node="small", direction="publish",
    condition="amqp:resource-limit-exceeded", rule="published.capacity-reached-rejected", outcome="rejected",
    answer="capacity-reached", native="capacity-reached", text="small: it is full", count=3,
    remedy="take messages from small", delivery=f"{RUN}:3",
) | {"class": "transient"}  # fmt: skip
LOGIN = error(
    3, "login", 50, user="ann", address="10.20.7.31", fault="failed-login",
    text="the password, the certificate or the name is wrong", remedy="correct the password in the application",
)  # fmt: skip
ERRORS = [MISSPELT, REFUSED, LOGIN]


def link(number: int, **other: Any) -> dict[str, Any]:
    return {
        "id": f"{RUN}.1.{number}", "user": "pricing", "container": "pricing-cache-1", "address": "10.20.4.40",
        "name": f"link-{number}", "direction": "subscribe", "kind": "consumer", "node": "small", "durable": "queue",
        "sender_settle_mode": "unsettled", "receiver_settle_mode": "first", "credit": 10, "unsettled": 0,
        "oldest_unsettled_s": None, "waiting": 0, "without_credit_s": 0.0, "without_credit_total_s": 0.0,
        "last_outcome_s": None, "not_given": None,
        "outcomes": {"accepted": 7, "released": 1}, **other,
    }  # fmt: skip


LINKS = [link(1, unsettled=5, oldest_unsettled_s=1080.0), link(2, credit=0, without_credit_s=90.0)]
CONNECTIONS = [
    {
        "id": f"{RUN}.1", "state": "open", "user": "pricing", "container": "pricing-cache-1", "address": "10.20.4.40",
        "since_us": NOW_US - 600 * SECOND_US, "client": {"product": "QpidJMS", "version": "2.5.0"}, "links": 2,
        "messages_received": 9, "unsettled": 5, "outcomes": {},
    }
]  # fmt: skip


def page(what: str, rows: list[dict[str, Any]], **other: Any) -> bytes:
    gateway = {"run": RUN, "at_us": NOW_US, "state": "ready", what: rows, "next": None, **other}
    return json.dumps({"gateways": [gateway]}).encode()


def gateway(
    port: int = 9464, *, errors: list[dict[str, Any]] | None = None, metrics: str = METRICS, **of_health: Any
) -> Gateway:
    """One that has answered a second ago."""
    made = Gateway(f"http://gw-a:{port}")
    answered_us = NOW_US - SECOND_US
    answer = read_health(json.dumps(health(**of_health)).encode())
    rows = read_page(page("errors", ERRORS if errors is None else errors), "errors")[1]
    made.answered(answered_us, answer, read_samples(metrics), rows, 0.02)
    connections = read_page(page("connections", CONNECTIONS), "connections")[1]
    made.has_links(answered_us, connections, read_page(page("links", LINKS), "links")[1], is_cut=False)
    return made


def history_of(run: str, begin: float, end: float, *, closed: bool = False, **counts: Any) -> HistoryRow:
    """A row of the history; `begin`, `end`: minutes ago."""
    begin_us, end_us = (NOW_US - round(minutes * 60 * SECOND_US) for minutes in (begin, end))
    times = {"begin_us": begin_us, "end_us": end_us}
    return history_row({**times, "runs": [{**times, "run": run, "closed": closed}], "records": 1, **counts})


NIGHT: tuple[HistoryRow, ...] = (
    history_of("earlier", 180, 120, closed=True,
               deliveries=[["in", "small", "accepted", 40], ["out", "orders", "rejected", 4]],
               dead_letters=[["orders", "rejected", 4]]),
    history_of(RUN, 60, 3, deliveries=[["in", "small", "accepted", 2], ["in", "small", "rejected", 3]],
               errors=[["amqp:resource-limit-exceeded", "capacity-reached", "transient",
                        "published.capacity-reached-rejected", "small", 3]],
               rules=[["publish", "publish-mixed", 5]]),
    history_of(RUN, 3, 0.5),
)  # fmt: skip
"""A run that was stopped two hours ago, an hour without any, and the run of now."""


def reading(*rows: HistoryRow, **other: Any) -> Reading:
    """Whole since five hours, a second ago."""
    known_us = NOW_US - 300 * 60 * SECOND_US
    at_us = NOW_US - SECOND_US
    return replace(Reading(rows or NIGHT, known_us, at_us, at_us, "ready"), **other)


def view(*gateways: Gateway, **query: str) -> View:
    history = History(asked_of(query, NOW_US), {instance.name: reading() for instance in gateways})
    return View([*gateways], [], None, NOW_US, query, realm="um", history=history)
