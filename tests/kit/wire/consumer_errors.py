"""Consumers that give messages back with an error."""

from __future__ import annotations

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from transformers.codec import AmqpMap, Described, Symbol, ULong

INFO = AmqpMap([(Symbol("order"), 4711), (Symbol("octets"), b"\x01\xff")])


WORDS = "cannot parse order 4711 \u2013 \u00e4"


def error(condition: str, description: str | None = None, info: AmqpMap | None = None) -> Described:
    fields = [Symbol(condition), description, info]
    return Described(ULong(0x1D), fields[: 3 if info is not None else 2])


BAD = frames.state("rejected", error("app:bad", WORDS, INFO))


def with_letters(gateway: GatewayProcess, node: str, *options: str) -> tuple[str, str]:
    dead = f"{node}.dead"
    gateway.command("node", "create", dead, *options)
    gateway.command("node", "create", node, "--dead-letter", dead, *options)
    return node, dead


def given_back(gateway: GatewayProcess, node: str, *states: Described, settled: bool = False) -> list[Seen]:
    """The answers to a consumer that gives a message back with each of these states."""
    with Peer(gateway.port) as peer:
        peer.stored(node, *(frames.message(b"%d" % number) for number in range(len(states))))
        peer.consumer(node, credit=len(states))
        peer.receive(len(states))
        peer.send(*(frames.disposition(at, at, state, settled) for at, state in enumerate(states)))
        if settled:
            peer.send(frames.detach(1))
            peer.expect("detach")
            return []
        return [peer.expect("disposition") for _ in states]
