"""Which links stand still: what makes one a problem, and what does not."""

from __future__ import annotations

from typing import Any

from gateway.verdict.problems import problems
from gateway.verdict.samples import read_samples
from gateway.verdict.slow_peers import standstill
from gateway.verdict.standing import Standing

NOW_US = 1_795_560_852_000_000
WAITING = 'realmgate_durable_waiting_events{durable="queue",node="jobs",partition="0"} 4.0\n'


def link(**other: Any) -> dict[str, Any]:
    return {
        "id": "a-1.7.1", "user": "ann", "container": "billing", "address": "10.0.0.1", "direction": "subscribe",
        "node": "jobs", "durable": None, "unsettled": 3, "oldest_unsettled_s": 0.0, "without_credit_s": 0.0,
        "last_outcome_s": None, "waiting": 0, "not_given": None, **other,
    }  # fmt: skip


def kind(waits: bool = True, **other: Any) -> str | None:
    fault = standstill(link(**other), waits)
    return fault and fault.kind


def test_a_consumer_that_holds_events_while_others_wait() -> None:
    assert kind(oldest_unsettled_s=5.0) == "held-unsettled"
    assert kind(oldest_unsettled_s=5.0, last_outcome_s=5.0) == "held-unsettled"
    assert kind(oldest_unsettled_s=4.9) is None
    assert kind(waits=False, oldest_unsettled_s=59.0) is None, "it may be at work, and it delays no message"
    assert kind(waits=False, oldest_unsettled_s=61.0) == "held-unsettled"
    assert kind(waits=False, oldest_unsettled_s=61.0, last_outcome_s=61.0) == "held-unsettled"
    assert kind(waits=False, oldest_unsettled_s=100.0, last_outcome_s=0.1) is None, "it has prefetched a thousand"


def test_a_consumer_that_settles_and_is_too_slow() -> None:
    assert kind(oldest_unsettled_s=5.0, last_outcome_s=1.0) == "slow-consumer"
    assert kind(without_credit_s=5.0) == "slow-consumer"
    assert kind(waits=False, oldest_unsettled_s=30.0, last_outcome_s=1.0) is None, "no message waits for it"
    assert kind(waits=False, without_credit_s=900.0) is None, "it wants nothing, and there is nothing"


def test_a_publisher_that_gets_no_answer() -> None:
    assert kind(direction="publish", oldest_unsettled_s=5.0) == "publisher-waits"
    assert kind(direction="publish", oldest_unsettled_s=4.0) is None
    assert kind(direction="publish", node=None, oldest_unsettled_s=9.0) is None, "a coordinator has requests of its own"


def standing(*links: dict[str, Any], metrics: str = WAITING, **health: Any) -> Standing:
    gateway = Standing("http://gw-a:9464")
    gateway.health = {"state": "ready", "run": "a-1", "digest": "", "problems": [], **health}
    gateway.samples = read_samples(metrics)
    gateway.links, gateway.links_us, gateway.answered_us = [*links], NOW_US, NOW_US
    return gateway


def test_a_problem_names_node_peer_rule_and_remedy() -> None:
    [fault] = problems([standing(link(oldest_unsettled_s=6.0))], [], NOW_US)
    assert (fault.node, fault.user, fault.container, fault.rule) == ("jobs", "ann", "billing", "links.held-unsettled")
    assert "realmgate connection close a-1.7 --reason TEXT" in fault.remedy
    assert fault.since_us == NOW_US - 6_000_000


def test_waiting_events_of_another_durable_concern_no_other_consumer() -> None:
    slow = link(durable="audit", without_credit_s=90.0)
    assert problems([standing(slow)], [], NOW_US) == [], "what waits is the queue's"


def test_a_subscriber_of_a_topic_has_no_durable_and_counts_by_itself() -> None:
    slow = link(node="news", without_credit_s=90.0, not_given=1_200)
    [fault] = problems([standing(slow)], [], NOW_US)
    assert (fault.kind, fault.node, fault.container) == ("slow-consumer", "news", "billing")
    assert "1,200 messages wait" in fault.words
    assert "what it has dropped billing never gets" in fault.remedy
    for other in (link(node="news", without_credit_s=90.0, not_given=0), link(node="news", without_credit_s=90.0)):
        assert problems([standing(other)], [], NOW_US) == []


def test_nodes_that_were_refused_beyond_the_entries_are_named() -> None:
    gateway = standing()
    row: dict[str, Any] = dict.fromkeys(
        ("durable", "link", "direction", "class", "outcome", "answer", "native", "fault")
    )
    row |= {
        "what": "attach",
        "user": "ann",
        "container": "billing",
        "address": "10.0.0.1",
        "condition": "amqp:not-found",
    }
    row |= {"node": "orders", "rule": "attach.unknown", "text": "", "remedy": "", "delivery": None, "id": "a-1.1"}
    times = {"first_us": NOW_US, "at_us": NOW_US, "count": 1, "more": 2}
    gateway.errors.append({**row, **times, "more_nodes": ["bills", "audits"]})
    [fault] = problems([gateway], [], NOW_US)
    assert fault.kind == "node-unknown"
    assert fault.more.endswith("Refused by the same rule, too: audits, bills.")


def trouble(kind: str, about: str = "") -> dict[str, Any]:
    return {"kind": kind, "about": about, "detail": "so", "remedy": "do it", "since_us": NOW_US}


def test_a_broken_node_names_the_peers_that_are_attached_to_it() -> None:
    links = link(), link(container="audit", id="a-1.8.1"), link(node="other", container="other")
    [fault] = problems([standing(*links, problems=[trouble("topic-missing", "jobs")])], [], NOW_US)
    assert (fault.node, fault.rule, fault.klass) == ("jobs", "health.topic-missing", "fatal")
    assert fault.who == "billing, user ann, 10.0.0.1, and 1 more"


def test_a_log_that_does_not_answer_names_the_peers_that_wait_for_it() -> None:
    waits = link(direction="publish", container="shop", oldest_unsettled_s=1.2)
    idle = link(direction="publish", container="idle")
    [fault] = problems([standing(waits, idle, problems=[trouble("cannot-write")])], [], NOW_US)
    assert (fault.node, fault.container, fault.rule) == ("jobs", "shop", "health.cannot-write")
    assert fault.who == "shop, user ann, 10.0.0.1"
