"""A publisher and a consumer that go from gateway to gateway, as clients with a failover list do, and what they know.

Each runs on a thread of its own until `finish`. A message that was not accepted is sent again; a message that was
received is acknowledged at once, and its consumer waits for the answer.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from contextlib import suppress

from tests.kit.patience import HANG_S
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

NODE = "orders"
BATCH = 20
PATIENCE_S = HANG_S
_NUMBER = re.compile(rb"#(\d+)#")


def message(number: int) -> bytes:
    return frames.message(b"#%d#" % number)


def number_of(payload: bytes) -> int:
    match = _NUMBER.search(payload)
    assert match is not None, payload
    return int(match[1])


class Traffic:
    """On queue `orders` of whichever of the gateways listens."""

    def __init__(self, ports: list[int]) -> None:
        self.accepted: set[int] = set()
        self.sent: Counter[int] = Counter()
        self.received: Counter[int] = Counter()
        self.acknowledged: Counter[int] = Counter()  # and answered so
        self._ports = ports
        self._over = threading.Event()  # nothing new is published
        self._done = threading.Event()  # nothing is consumed any more
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._publish, self._consume)]
        for thread in self._threads:
            thread.start()

    def await_progress(self, count: int = 200) -> None:
        """Until that many more were accepted and received."""
        accepted, received = len(self.accepted) + count, self.received.total() + count
        deadline = time.monotonic() + PATIENCE_S
        while len(self.accepted) < accepted or self.received.total() < received:
            assert time.monotonic() < deadline, "nothing moves"
            time.sleep(0.01)

    def finish(self) -> set[int]:
        """End in order; what was accepted and never received."""
        self._over.set()
        self._threads[0].join(PATIENCE_S)
        deadline = time.monotonic() + PATIENCE_S
        while self.accepted - self.received.keys() and time.monotonic() < deadline:
            time.sleep(0.05)
        self._done.set()
        self._threads[1].join(PATIENCE_S)
        return self.accepted - self.received.keys()

    def given_after_their_end(self) -> set[int]:
        """Messages that came again though the gateway had answered their acknowledgement. One that was sent more
        than once, for want of an answer, may be stored as often."""
        return {number for number, count in self.acknowledged.items() if count > self.sent[number]}

    def _publish(self) -> None:
        number, pending = 0, list[int]()
        while pending or not self._over.is_set():
            try:
                with self._peer() as peer:
                    peer.publisher(NODE)
                    while pending or not self._over.is_set():
                        if not pending:
                            pending, number = list(range(number, number + BATCH)), number + BATCH
                        self.sent.update(pending)
                        sent = dict(zip(peer.publish(*map(message, pending)), pending, strict=True))
                        outcomes = peer.outcomes(len(sent))
                        accepted = {sent[at] for at, outcome in outcomes.items() if outcome == "accepted"}
                        self.accepted |= accepted
                        pending = [message_no for message_no in pending if message_no not in accepted]
            except (AssertionError, OSError):
                time.sleep(0.01)

    def _consume(self) -> None:
        while not self._done.is_set():
            try:
                with self._peer() as peer:
                    peer.consumer(NODE, credit=4 * BATCH)
                    while not self._done.is_set():
                        self._take(peer)
                        assert not peer.eof
                        peer.credit(4 * BATCH)
            except (AssertionError, OSError):
                time.sleep(0.01)

    def _take(self, peer: Peer) -> None:
        """At most a batch, one by one: the last that come need not be a batch."""
        taken: dict[int, int] = {}
        with suppress(AssertionError):  # no more came
            while len(taken) < BATCH:
                [seen] = peer.receive(1, deadline_s=1.0)
                number = taken[seen.field(1)] = number_of(seen.payload)
                self.received[number] += 1
                peer.settle([seen.field(1)], frames.state("accepted"), settled=False)
        while taken:
            for delivery, outcome in peer.outcomes(1).items():
                number = taken.pop(delivery)
                self.acknowledged[number] += outcome == "accepted"

    def _peer(self) -> Peer:
        for port in self._ports[:-1]:
            try:
                return Peer(port)
            except OSError:
                continue
        return Peer(self._ports[-1])
