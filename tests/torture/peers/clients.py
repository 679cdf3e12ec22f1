"""All peers of one run, on one thread."""

from __future__ import annotations

import selectors
import threading
import time

from tests.torture.history import History
from tests.torture.peers.peer import Peer

STEP_S = 0.004
STALL_S = 0.5  # a turn that took longer is noted: what came meanwhile was seen so much later


class Clients:
    """Turns the peers until `stop`. A fault of the thread is raised out of `check` and `stop`."""

    def __init__(self, peers: list[Peer], history: History) -> None:
        self.peers = peers
        self._history = history
        self._fault: BaseException | None = None
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="torture-clients", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """The connections end without a word."""
        self._is_over = True
        self._thread.join()
        now = time.monotonic()
        for peer in self.peers:
            peer.drop("over", now)
        self.check()

    def check(self) -> None:
        if self._fault is not None:
            raise AssertionError("a peer went wrong") from self._fault

    @property
    def in_flight(self) -> int:
        return sum(peer.in_flight for peer in self.peers)

    def push(self, is_pushing: bool) -> None:
        """Fill every window, and hold what comes."""
        for peer in self.peers:
            peer.is_pushing = is_pushing

    def _run(self) -> None:
        try:
            while not self._is_over:
                began_s = time.monotonic()
                self._turn()
                took_s = time.monotonic() - began_s
                if took_s > STALL_S:
                    self._history.note("stalled", round(took_s * 1000))
        except BaseException as fault:  # carried to the thread that waits for us
            self._fault = fault

    def _turn(self) -> None:
        """Whatever is readable is read before anybody says anything: so rows are in a true order between peers."""
        with selectors.DefaultSelector() as selector:
            for peer in self.peers:
                if peer.socket is not None:
                    events = selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.wants_to_write else 0)
                    selector.register(peer.socket, events, peer)
            ready = selector.select(STEP_S) if selector.get_map() else []
        now = time.monotonic()
        for key, events in ready:
            if events & selectors.EVENT_READ and key.data.socket is key.fileobj:
                key.data.readable(now)
        for peer in self.peers:
            peer.tick(now)
        left = STEP_S - (time.monotonic() - now)
        if left > 0:
            time.sleep(left)
