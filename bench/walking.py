"""What the tap costs: processor time a message, to tell apart what proton must not see or would read with a loss.

    python -m bench.walking [--record]

Streams as clients send them, in chunks of 64 KiB as sockets give them: transfers of whole messages, and dispositions of
one message each or of a hundred, in transactions and not. The best of 15 rounds: whatever else the machine does only
adds. `--record` writes
results/DATE-COMMIT-walking.json. Required: issue of the AMQP layer, *What proton does not do*.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from bench.report import keep
from gateway.frames.endpoints import Endpoints
from gateway.frames.frame_reader import FrameReader
from gateway.frames.frames import OPEN, Fault, Frame
from tests.kit.wire import frames
from transformers.codec import Described, encode

CHUNK_BYTES, FRAME_BYTES, MESSAGE_BYTES = 65_536, 65_536, 1 << 20
MESSAGES, ROUNDS = 20_000, 15
REQUIRED_US = 0.3


def transfers(size: int) -> bytes:
    message = encode(Described(0x75, b"x" * size))
    return b"".join(frames.transfer(number, message) for number in range(MESSAGES))


def dispositions(batch: int, state: Described) -> bytes:
    return b"".join(
        frames.disposition(first, first + batch - 1, state, settled=True) for first in range(0, MESSAGES, batch)
    )


def streams() -> Iterator[tuple[str, bytes]]:
    accepted = frames.state("accepted")
    for size in (100, 1024):
        yield f"transfers of {size} B", transfers(size)
    for batch in (1, 100):
        yield f"dispositions of {batch}", dispositions(batch, accepted)
    yield "transactional, of 1", dispositions(1, frames.in_transaction(b"19aa5b3c1f0-9c2e:1", accepted))


def measure(stream: bytes) -> float:
    """Microseconds a message."""
    chunks = [stream[at : at + CHUNK_BYTES] for at in range(0, len(stream), CHUNK_BYTES)]
    rounds = []
    for _ in range(ROUNDS):
        frame_reader, piece = attached(), None
        began = time.process_time()
        for chunk in chunks:
            for piece in frame_reader.walk(chunk):  # noqa: B007
                pass
        rounds.append(time.process_time() - began)
        assert piece is not None and not isinstance(piece[3], Fault), f"it was not walked to its end: {piece}"
    return min(rounds) * 1e6 / MESSAGES


def attached() -> FrameReader:
    """Of a connection with a link each way."""
    endpoints = Endpoints(channel_max=5)
    endpoints.see(Frame(0, OPEN, ("peer",)))
    frame_reader = FrameReader(FRAME_BYTES, MESSAGE_BYTES, endpoints)
    for piece in frame_reader.walk(frames.begin() + frames.attach_sender("q") + frames.attach_receiver("q")):
        assert isinstance(piece[3], Frame), piece
    endpoints.sessions[0].given = MESSAGES
    return frame_reader


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.walking", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args(argv)
    rows = {name: round(measure(stream), 3) for name, stream in streams()}
    for name, cost_us in rows.items():
        sys.stdout.write(f"{name:22} {cost_us:6.3f} us a message\n")
    worst = max(rows.values())
    verdict = "met" if worst <= REQUIRED_US else "NOT met"
    sys.stdout.write(f"{worst:.3f} us at most, required {REQUIRED_US} us: {verdict}\n")
    if arguments.record:
        started = time.strftime("%Y-%m-%dT%H%M")
        keep(started, "walking", {"command": "python -m bench.walking --record", "us": rows})
    return 0 if worst <= REQUIRED_US else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
