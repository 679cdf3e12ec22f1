"""python-qpid-proton's own `Container` as a foreign client, with its transaction client.

    container.py send     HOST:PORT QUEUE COUNT          each confirmed
    container.py transfer HOST:PORT FROM TO COUNT BATCH  in transactions, the first one rolled back
    container.py receive  HOST:PORT QUEUE COUNT          accepts each

Message i has the body `message i`. Prints one line of JSON; exit 0 when all is as it should be.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from proton import Message
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container

TIMEOUT_S = 60.0


class Scenario(MessagingHandler):
    """What all three have in common: one connection, a report, an end."""

    def __init__(self, address: str, **settings: Any) -> None:
        super().__init__(**settings)
        self.address = address
        self.report: dict[str, Any] = {}
        self.faults: list[str] = []

    def on_start(self, event: Any) -> None:
        self.container = event.container
        self.connection = event.container.connect(self.address, reconnect=False)
        self.timer = event.container.schedule(TIMEOUT_S, self)
        self.open()

    def open(self) -> None:
        raise NotImplementedError

    def on_timer_task(self, _: Any) -> None:
        self.fail(f"no end within {TIMEOUT_S} s: {self.report}")

    def on_error(self, event: Any) -> None:
        self.fail(f"{event.type.name}: {event.link and event.link.remote_condition}")

    on_transport_error = on_connection_error = on_session_error = on_link_error = on_error

    def fail(self, why: str) -> None:
        self.faults.append(why)
        self.end()

    def end(self) -> None:
        self.timer.cancel()
        self.connection.close()


class Send(Scenario):
    def __init__(self, address: str, queue: str, count: int) -> None:
        super().__init__(address)
        self.queue, self.count, self.sent = queue, count, 0
        self.report = {"accepted": 0}

    def open(self) -> None:
        self.container.create_sender(self.connection, self.queue)

    def on_sendable(self, event: Any) -> None:
        while event.sender.credit and self.sent < self.count:
            event.sender.send(message(self.sent))
            self.sent += 1

    def on_accepted(self, event: Any) -> None:
        self.report["accepted"] += 1
        if self.report["accepted"] == self.count:
            self.end()

    def on_released(self, event: Any) -> None:
        self.fail(f"{event.delivery.remote_state}")

    on_rejected = on_released


class Receive(Scenario):
    def __init__(self, address: str, queue: str, count: int) -> None:
        super().__init__(address)
        self.queue, self.count = queue, count
        self.bodies: list[str] = []

    def open(self) -> None:
        self.container.create_receiver(self.connection, self.queue)

    def on_message(self, event: Any) -> None:
        self.bodies.append(event.message.body)
        if len(self.bodies) == self.count:
            expected = [f"message {number}" for number in range(self.count)]
            self.report = {"in order": self.bodies == expected, "each once": sorted(self.bodies) == sorted(expected)}
            self.end()


class Transfer(Scenario, TransactionHandler):
    """Takes from one queue and sends to another, BATCH messages a transaction. The first transaction is rolled back
    and its messages are given back; then it takes them again."""

    def __init__(self, address: str, here: str, there: str, count: int, batch: int) -> None:
        super().__init__(address, prefetch=0, auto_accept=False)
        self.here, self.there, self.count, self.batch = here, there, count, batch
        self.report = {"declared": 0, "committed": 0, "aborted": 0}
        self.transaction: Any = None
        self.taken = self.done = 0

    def open(self) -> None:
        self.receiver = self.container.create_receiver(self.connection, self.here)
        self.sender = self.container.create_sender(self.connection, self.there)

    def on_sendable(self, event: Any) -> None:
        if event.sender == self.sender and self.transaction is None:
            self.declare()  # not before: proton sends a discharge even while sends of that transaction wait for credit

    def declare(self) -> None:
        self.transaction = True
        self.container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event: Any) -> None:
        self.report["declared"] += 1
        self.transaction, self.taken = event.transaction, 0
        self.receiver.flow(self.batch)

    def on_message(self, event: Any) -> None:
        self.transaction.accept(event.delivery)
        self.transaction.send(self.sender, event.message)
        self.taken += 1
        if self.taken < self.batch:
            return
        if self.report["aborted"]:
            self.transaction.commit()
        else:
            self.transaction.abort()

    def on_transaction_aborted(self, event: Any) -> None:
        self.report["aborted"] += self.taken
        self.container.schedule(0, Later(self.declare))  # once proton has released what it had taken

    def on_transaction_committed(self, event: Any) -> None:
        self.report["committed"] += self.taken
        if self.report["committed"] == self.count:
            self.end()
        else:
            self.declare()

    def on_failed(self, event: Any) -> None:
        self.fail("a declare or discharge was refused")

    on_transaction_declare_failed = on_transaction_commit_failed = on_failed


class Later(MessagingHandler):
    def __init__(self, what: Any) -> None:
        super().__init__()
        self.what = what

    def on_timer_task(self, _: Any) -> None:
        self.what()


def message(number: int) -> Message:
    return Message(id=number, body=f"message {number}", durable=True)


def main(command: str, address: str, *rest: str) -> int:
    names = [word for word in rest if not word.isdigit()]
    numbers = [int(word) for word in rest if word.isdigit()]
    kind: Any = {"send": Send, "receive": Receive, "transfer": Transfer}[command]
    scenario = kind(address, *names, *numbers)
    Container(scenario).run()
    sys.stdout.write(json.dumps(scenario.report) + "\n")
    sys.stderr.write("".join(f"{fault}\n" for fault in scenario.faults))
    return 1 if scenario.faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
