"""What a dead-letter node holds, as a peer reads it."""

from __future__ import annotations

from typing import Any

from tests.kit.processes.gateway import GatewayProcess
from tests.kit.wire import frames
from tests.kit.wire.frames import Seen
from tests.kit.wire.peer import Peer
from transformers.codec import decode
from transformers.message.sections import MESSAGE_ANNOTATIONS, PROPERTIES, section_offsets


def given(peer: Peer, node: str, count: int = 1, name: str = "sub") -> list[Seen]:
    peer.consumer(node, credit=count, name=name)
    return peer.receive(count)


def annotated(payload: bytes) -> dict[str, Any]:
    offsets = section_offsets(payload)
    end = min(offset for offset in offsets[PROPERTIES:] if offset >= 0)
    section, _ = decode(payload[offsets[MESSAGE_ANNOTATIONS] : end])
    return {str(key): value for key, value in section.value.pairs}


def letter(gateway: GatewayProcess, dead: str) -> bytes:
    """The one event of the dead-letter node, taken off it."""
    with Peer(gateway.port) as other:
        (seen,) = given(other, dead)
        other.settle([seen.field(1)], frames.state("accepted"))
        other.nothing()
        return seen.payload
