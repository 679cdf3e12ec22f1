"""`realmgate top`: rates are the differences of two readings, over the time between them."""

from __future__ import annotations

import io
import json
import re
import time
from argparse import Namespace
from typing import Any

import pytest
from proton import Message
from proton.utils import BlockingConnection

from gateway.cli.gateways import top
from gateway.cli.gateways.top import Reading, links_between, nodes_of
from tests.gateway.cli.command_line import Run, config, run
from tests.kit.patience import HANG_S
from tests.kit.processes.admin_pages import DEADLINE_S, Watch
from tests.kit.processes.gateway import StartGateway

__all__ = ["config", "run"]

S = 1_000_000


def row(number: str, node: str | None, direction: str, accepted: int, at_us: int, unsettled: int = 0) -> dict[str, Any]:
    names = {"user": None, "container": "c", "kind": "relay", "credit": 5, "unsettled": unsettled}
    return {
        "id": number,
        "node": node,
        "direction": direction,
        "outcomes": {"accepted": accepted},
        "at_us": at_us,
    } | names


def reading(run: str, at_us: int, *rows: dict[str, Any]) -> Reading:
    return Reading(run, "http://x", "ready", at_us, {link["id"]: link for link in rows})


def test_a_rate_is_a_difference_over_the_time_between() -> None:
    links_before = [row("1", "q", "publish", 10, S), row("2", "q", "subscribe", 5, S), row("9", "q", "publish", 7, S)]
    before = reading("a", S, *links_before)
    after = reading(
        "a",
        3 * S,
        row("1", "q", "publish", 30, 3 * S, 2),
        row("2", "q", "subscribe", 7, 5 * S, 3),
        row("3", None, "publish", 8, 3 * S),
    )
    links = links_between(before, after)
    assert [(link.id, link.node, link.rate) for link in links] == [("1", "q", 10), ("3", "(relay)", 4), ("2", "q", 0.5)]
    [queue, relay] = nodes_of(links)
    assert (queue.node, queue.publishers, queue.consumers, queue.rate_in, queue.rate_out) == ("q", 1, 1, 10, 0.5)
    assert (queue.unsettled, relay.rate_in) == (5, 4)


def test_another_run_counts_from_nothing() -> None:
    before = reading("a", S, row("1", "q", "publish", 100, S))
    [link] = links_between(before, reading("b", 2 * S, row("1", "q", "publish", 6, 2 * S)))
    assert link.rate == 6


def test_a_gateway_that_does_not_answer(run: Run) -> None:
    code, out, err = run("top", "--gateway", "http://127.0.0.1:1", configured=False)
    assert (code, out) == (2, "") and "http://127.0.0.1:1 does not answer" in err


def test_what_happens_between_two_readings_of_a_gateway(new_gateway: StartGateway) -> None:
    gateway = new_gateway("embedded", admin={"listen": "http://127.0.0.1:0"})
    watch, out = Watch.of(gateway), io.StringIO()
    arguments = Namespace(gateway=[watch.url], interval=0.0, times=2, links=1, json=False)
    connection = BlockingConnection(f"amqp://{gateway.address}", timeout=HANG_S, container_id="both")
    connection.container.timeout = 0.1
    sender, receiver = connection.create_sender("orders"), connection.create_receiver("orders", credit=100)

    def work(_: float) -> None:
        """Eight messages come in, four are settled; until the gateway has counted them."""
        wanted = accepted(watch)["publish"] + 8, accepted(watch)["subscribe"] + 4
        for _ in range(8):
            sender.send(Message(body="x"))
        for _ in range(4):
            receiver.receive()
            receiver.accept()
        end = time.monotonic() + DEADLINE_S
        while (counts := accepted(watch)) != {"publish": wanted[0], "subscribe": wanted[1]}:
            assert time.monotonic() < end, counts
            connection.container.process()

    try:
        assert top.run(arguments, None, out, work) == 0
        text = out.getvalue()
        assert text.count(f"gateway {watch.health()['run']} at {watch.url}: ready") == 2
        assert len(re.findall(r"^orders +1 +1 +[0-9.]+ +[0-9.]+ +[0-9]+$", text, re.MULTILINE)) == 2
        assert text.count(" publish ") == 2 and text.count("and 1 slower ones") == 2 and " both " in text
        out.truncate(0), out.seek(0)
        arguments.json, arguments.times = True, 1
        assert top.run(arguments, None, out, work) == 0
        [node] = json.loads(out.getvalue())["nodes"]
        assert node["rate_in"] == pytest.approx(2 * node["rate_out"]) and node["rate_out"] > 0
        assert node["unsettled"] == 12, "the consumer was given all, and has settled half of them"
    finally:
        connection.close()


def accepted(watch: Watch) -> dict[str, int]:
    """By direction."""
    _, _, body = watch.ask("/api/links")
    [answer] = json.loads(body)["gateways"]
    return {link["direction"]: link["outcomes"].get("accepted", 0) for link in answer["links"]}
