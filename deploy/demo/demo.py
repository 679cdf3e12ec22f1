"""The main job, once, on real sockets: publish, consume, crash, reconcile. `make demo` runs it, `make demo REALM=kafka`
does the same on a real Kafka.

Everything it makes lies under var/demo; it ends by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from proton import Delivery, Described, Message, Timeout, ulong
from proton.reactor import AtMostOnce, DurableSubscription
from proton.utils import BlockingConnection, LinkDetached, SendException

ROOT = Path(__file__).resolve().parents[2]
REALMGATE = str(Path(sys.executable).parent / "realmgate")
QUEUE, CHANNEL = "orders", "prices"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def step(text: str) -> None:
    say(f"\n== {text}")


def realmgate(*words: str, check: bool = True) -> int:
    say("   $ realmgate " + " ".join(words))
    return subprocess.run([REALMGATE, *words], check=check).returncode  # noqa: S603


def write_config(directory: Path, realm: str, bootstrap: str) -> Path:
    config = directory / "realmgate.yaml"
    kafka = f'{{kind: kafka, bootstrap: "{bootstrap}", prefix: "demo-{os.getpid()}"}}'
    where = kafka if realm == "kafka" else "{kind: embedded, path: realm}"
    config.write_text(f'listen: ["amqp://127.0.0.1:0"]\nrealm: {where}\n')
    return config


@contextlib.contextmanager
def kafka(realm: str) -> Iterator[str]:
    """A real single-node Kafka for as long as it is needed; none for the embedded realm."""
    if realm != "kafka":
        yield ""
        return
    step("starting a real Kafka (deploy/kafka)")
    start = [str(ROOT / "deploy/kafka/start.sh")]
    result = subprocess.run(start, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    bootstrap = result.stdout.strip().splitlines()[-1]
    say(f"   {bootstrap}; it stays up, `make kafka-stop` ends it")
    yield bootstrap


@contextlib.contextmanager
def gateway(config: Path) -> Iterator[str]:
    """The gateway as a process; yields its address, ends it with SIGTERM."""
    with (config.parent / "gateway.log").open("w") as log:
        process = subprocess.Popen(  # noqa: S603
            [REALMGATE, "serve", "--config", str(config)], stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline().split()
        if not ready or ready[0] != "ready":
            raise SystemExit(f"the gateway did not start: see {config.parent / 'gateway.log'}")
        say("   " + " ".join(ready))
        yield ready[1]
    finally:
        process.send_signal(signal.SIGTERM)
        say(f"   the gateway stopped with exit code {process.wait(10)}")


BODIES: dict[str, Message] = {
    "text": Message(body="a line of text"),
    "bytes": Message(body=b"\x00\x01\x02", inferred=True),
    "map": Message(body={"price": 42, "currency": "EUR"}),
    "list": Message(body=["a", 1, None]),
    "sequence": Message(body=[1, 2, 3], inferred=True),
    "number": Message(body=42),
    "described": Message(body=Described(ulong(99), "x")),
    "properties": Message(body="with properties", id="m-1", subject="s", properties={"colour": "red"}, durable=True),
}


def publish(address: str) -> None:
    connection = BlockingConnection(address, timeout=10)
    sender = connection.create_sender(QUEUE)
    for kind, message in BODIES.items():
        say(f"   {kind:<11} -> {QUEUE}: {_state(sender.send(message))}")
    for number in range(200):
        sender.send(Message(body=f"order {number}", durable=True))
    say(f"   200 orders  -> {QUEUE}: ACCEPTED, one by one")
    prices = connection.create_sender(CHANNEL)
    for number in range(50):
        prices.send(Message(body=f"price {number}"))
    say(f"   50 prices   -> {CHANNEL}: ACCEPTED")
    _publish_settled(connection)
    null = _send_raw(connection, sender, "null", b"\x00\x53\x77\x40")
    say(f"   null        -> {QUEUE}: {_state(null)}")
    _publish_nonsense(address)
    try:
        connection.create_sender("no-such-node")
    except LinkDetached as error:
        say(f"   unknown node: {error}")
    connection.close()


def _publish_settled(connection: BlockingConnection) -> None:
    sender = connection.create_sender(QUEUE, name="settled", options=AtMostOnce())
    for number in range(20):
        sender.send(Message(body=f"fire and forget {number}"))
    sender.close()
    say(f"   20 settled  -> {QUEUE}: no answer, as asked")


def _publish_nonsense(address: str) -> None:
    """On a connection of its own: what is no message ends its session (ADR 0053), and with it the other links there."""
    connection = BlockingConnection(address, timeout=10)
    sender = connection.create_sender(QUEUE)
    refused = _send_raw(connection, sender, "nonsense", b"this is no AMQP message")
    say(f"   nonsense    -> {QUEUE}: {_state(refused)} ({refused.remote.condition.name}); its session was ended")
    connection.close()


def _send_raw(connection: BlockingConnection, sender: object, tag: str, octets: bytes) -> Delivery:
    """A message as bytes: the library would not write these."""
    link = sender.link  # type: ignore[attr-defined]
    delivery = link.delivery(tag)
    link.stream(octets)
    link.advance()
    connection.wait(lambda: delivery.settled, msg="waiting for the answer")
    return delivery


def _state(delivery: Delivery) -> str:
    return {36: "ACCEPTED", 37: "REJECTED", 38: "RELEASED", 39: "MODIFIED"}[int(delivery.remote_state)]


def consume_queue(address: str) -> None:
    connection = BlockingConnection(address, timeout=10)
    receiver = connection.create_receiver(QUEUE, credit=10)
    for number in range(30):
        receiver.receive(timeout=10)
        if number % 10 == 9:
            receiver.release(delivered=False)
        else:
            receiver.accept()
    say("   accepted 27, released 3 (they come back)")
    connection.close()


def subscribe_durably(address: str, name: str, count: int) -> int:
    """Take up to `count` events through a durable subscription; the subscription stays."""
    connection = BlockingConnection(address, timeout=10, container_id="demo")  # type: ignore[call-arg]
    receiver = connection.create_receiver(CHANNEL, credit=10, name=name, options=DurableSubscription())
    taken = 0
    with contextlib.suppress(Timeout):
        while taken < count:
            receiver.receive(timeout=1)
            receiver.accept()
            taken += 1
    receiver.link.detach()
    connection.close()
    return taken


def crash(address: str) -> None:
    """A consumer that takes ten and dies with them: they come back."""
    connection = BlockingConnection(address, timeout=10)
    receiver = connection.create_receiver(QUEUE, credit=10)
    for _ in range(10):
        receiver.receive(timeout=10)
    os._exit(7)


def drain_queue(address: str) -> int:
    connection = BlockingConnection(address, timeout=10)
    receiver = connection.create_receiver(QUEUE, credit=50)
    taken = 0
    with contextlib.suppress(Timeout):
        while True:
            receiver.receive(timeout=1)
            receiver.accept()
            taken += 1
    connection.close()
    return taken


def run(realm: str, directory: Path) -> int:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with kafka(realm) as bootstrap:
        config = write_config(directory, realm, bootstrap)
        step("two nodes: a queue and a channel")
        realmgate("node", "create", QUEUE, "--kind", "queue", "--config", str(config))
        realmgate("node", "create", CHANNEL, "--kind", "channel", "--config", str(config))
        step("the gateway")
        with gateway(config) as address:
            step("a durable subscription, then publishing")
            subscribe_durably(address, "watcher", 0)
            publish(address)
            step("consuming: accept and release; a crash; what is left; the durable subscription")
            consume_queue(address)
            child = subprocess.run([sys.executable, __file__, "--crash", address], check=False)  # noqa: S603
            say(f"   a consumer died holding 10 unsettled (exit {child.returncode})")
            say(f"   then {drain_queue(address)} more were taken, the returned ones first")
            say(f"   the durable subscriber found {subscribe_durably(address, 'watcher', 1000)} of 50 prices waiting")
            step("reconciling beside the live gateway (Spark)")
            report = directory / "report"
            verdict = realmgate("reconcile", "--config", str(config), "--out", str(report), check=False)
    if verdict != 0:
        say(f"the reconciliation says {verdict}: look at {report}")
        return 1
    step("done. Try next")
    say(f"   look at {next(iter(sorted(report.rglob('*.html'))), report)}")
    say("   make run                              serve on the embedded realm; connect with any AMQP 1.0 client")
    say("   .venv/bin/realmgate mappings explain settle state=released   which rule decides, and why")
    say("   make demo REALM=kafka                 the same on a real Kafka")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--realm", choices=["embedded", "kafka"], default="embedded")
    parser.add_argument("--dir", type=Path, default=ROOT / "var" / "demo", help="emptied first; %(default)s")
    parser.add_argument("--crash", metavar="ADDRESS", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.crash:
        crash(words.crash)
    try:
        return run(words.realm, words.dir)
    except SendException as error:
        say(f"a message was not accepted: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
