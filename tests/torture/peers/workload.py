"""The workload: which peers use which nodes. Two nodes have one store each, the others several.

* `orders`, a queue, and `news`, a channel: of one store, made by the first attach;
* `spread`, a queue of several partitions, with groups and without; `wide`, a channel of several;
* `levels`, a queue with levels of priority.
"""

from __future__ import annotations

from random import Random

from tests.torture.history import History
from tests.torture.peers.clients import Clients
from tests.torture.peers.consumer import Consumer
from tests.torture.peers.lanes import Lanes
from tests.torture.peers.peer import Peer
from tests.torture.peers.publisher import Publisher
from tests.torture.peers.transactor import Output, Transactor

RATE = 60.0  # events a second of a peer that publishes to several stores; the others publish more


def clients_of(port: int, history: History, seed: int) -> Clients:
    """Each queue has competing consumers, each channel a durable and a plain subscriber; two peers take from a queue
    and post to two nodes in transactions."""

    def of(number: int) -> tuple[int, int, History, Random]:
        return number, port, history, Random(f"{seed} peer {number}")

    peers: list[Peer] = [
        Publisher("p1", *of(1), "orders", "queue", 300),
        Publisher("p2", *of(2), "orders", "queue", 300),
        Publisher("p3", *of(3), "news", "channel", 300),
        Consumer("c4", *of(4), "orders", "queue", 300),
        Consumer("c5", *of(5), "orders", "queue", 150),
        Consumer("c6", *of(6), "news", "durable", 200),
        Consumer("c7", *of(7), "news", "plain", 0),
        Transactor("t8", *of(8), "orders", [Output("orders", "queue"), Output("news", "channel")]),
        Publisher("p10", *of(10), "spread", "queue", 150, Lanes.GROUPS),
        Publisher("p11", *of(11), "spread", "queue", 150, Lanes.GROUPS),
        Publisher("p12", *of(12), "levels", "queue", 150, Lanes.PRIORITIES),
        Publisher("p13", *of(13), "wide", "channel", 150, Lanes.GROUPS),
        Consumer("c14", *of(14), "spread", "queue", 150),
        Consumer("c15", *of(15), "spread", "queue", 100),
        Consumer("c16", *of(16), "levels", "queue", 150),
        Consumer("c17", *of(17), "wide", "durable", 100),
        Consumer("c18", *of(18), "wide", "plain", 0),
        Transactor(
            "t9",
            *of(9),
            "levels",
            [Output("spread", "queue", Lanes.GROUPS), Output("levels", "queue", Lanes.PRIORITIES)],
        ),
    ]
    for peer in peers:
        if isinstance(peer, Publisher) and peer.lanes is not Lanes.NONE:
            peer.rate = RATE
    return Clients(peers, history)
