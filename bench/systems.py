"""What is measured: systems that speak AMQP at an address; all up for the whole run, one busy at a time."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.kit.processes.artemis import Artemis, start_artemis
from tests.kit.processes.broker import Broker, start_broker
from tests.kit.processes.gateway import GatewayProcess, embedded_realm, kafka_realm, start_gateway

DIRECTORY = Path(__file__).parent.parent / ".cache" / "bench"


@dataclass(frozen=True, slots=True)
class Systems:
    """`kafka` and `embedded` are realmgate on those realms."""

    broker: Broker
    kafka: GatewayProcess
    embedded: GatewayProcess
    artemis: Artemis

    def pids(self) -> list[int]:
        return [self.broker.pid, self.kafka.pid, self.embedded.pid, self.artemis.pid]

    def addresses(self) -> dict[str, str]:
        return {"kafka": self.kafka.address, "embedded": self.embedded.address, "artemis": self.artemis.address}


@contextmanager
def running() -> Iterator[Systems]:
    """Everything started on empty directories, and stopped by pid at the end."""
    shutil.rmtree(DIRECTORY, ignore_errors=True)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, DIRECTORY, ignore_errors=True)  # a run that breaks off leaves no 25 GB behind
        broker = start_broker(DIRECTORY / "kafka")
        stack.callback(broker.stop)
        kafka = start_gateway(DIRECTORY / "on-kafka", kafka_realm(broker.bootstrap, "bench"))
        stack.callback(kafka.stop)
        embedded = start_gateway(DIRECTORY / "embedded", embedded_realm(DIRECTORY / "embedded"))
        stack.callback(embedded.stop)
        artemis = start_artemis(DIRECTORY / "artemis", heap="4g")
        stack.callback(artemis.stop)
        yield Systems(broker, kafka, embedded, artemis)
