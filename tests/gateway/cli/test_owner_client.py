"""Commands that the owner of a realm carries out: what a caller learns of an owner that answers too late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import count

import pytest

from gateway.cli import owner_client
from gateway.cli.owner_client import ask
from gateway.config.settings import load_settings
from gateway.serve.open_log import open_log
from native_backend.clock import SystemClock
from native_backend.journal.journal import journal_topic, tail
from native_backend.log.port import Log, Records
from native_backend.nodes.commands import Command, Reply, cause_of
from native_backend.nodes.metadata_writer import realm_metadata
from tests.kit.patience import until
from tests.kit.processes.gateway import GatewayProcess, StartGateway
from tests.kit.wire.peer import Peer
from tests.kit.wire.reloading import MESSAGE

ID = "0123456789abcdef"


class Hurried(SystemClock):
    """Each look is 20 s later."""

    def __init__(self) -> None:
        self._looks = count()

    def monotonic_s(self) -> float:
        return 20.0 * next(self._looks)


@pytest.fixture
def gateway(new_gateway: StartGateway) -> GatewayProcess:
    """Two messages in `orders`, and a queue beside it."""
    gateway = new_gateway("embedded")
    gateway.command("node", "create", "orders")
    gateway.command("node", "create", "side")
    with Peer(gateway.port) as peer:
        peer.stored("orders", MESSAGE, MESSAGE)
    return gateway


def moved(gateway: GatewayProcess) -> Reply:
    settings = load_settings(gateway.config_path)
    with closing(open_log(settings)) as log:
        store = realm_metadata(log, settings.realm.prefix).nodes["orders"].part(0).store
        until_us = SystemClock().epoch_us() + 60_000_000
        command = Command(ID, "move", "orders", store, "queue", until_us, to="side")
        return ask(log, settings.realm.prefix, command, Hurried())


def test_an_owner_that_says_nothing_may_still_begin(gateway: GatewayProcess) -> None:
    gateway.stop()
    reply = moved(gateway)
    assert (reply.answer, reply.count) == ("indeterminate", 0), reply
    assert "may still be carried out" in reply.detail and "nothing was done" not in reply.detail


def test_what_is_in_the_journal_is_done_though_no_answer_came(
    gateway: GatewayProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unanswered(log: Log, topic: str, start: int) -> Iterator[Records]:
        prefix = topic.partition(".")[0]
        cause = cause_of(Command(ID, "move", "", 0, "", 0))

        def is_done() -> bool:
            records = tail(log, journal_topic(prefix), 0)
            return any(entry["cause"] == cause for _, record in records for entry in record["entries"])

        until(is_done, "the owner's record in the journal")
        return iter(())

    monkeypatch.setattr(owner_client, "read_tail", unanswered)
    reply = moved(gateway)
    assert (reply.answer, reply.count) == ("indeterminate", 2), reply
    assert "this part is in the journal" in reply.detail
