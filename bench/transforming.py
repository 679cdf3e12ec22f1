"""What a transformer costs: processor time a message, to an event and back, without a log and without AMQP's frames.

    python -m bench.transforming [--record]

Messages as applications send them: a header, message-id, content-type and creation-time, three application properties
and one data section; `bare` has nothing but the data section, `varied` another length each. Runs of 100, the best of 15
rounds: whatever else the machine does only adds. `--record` writes results/DATE-COMMIT-transforming.json.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from bench.report import keep
from gateway.links.event_to_message import EventToMessage
from gateway.links.message_to_event import MessageToEvent, conversion
from native_backend.events.event_kind import is_message
from native_backend.log.octets import Octets
from transformers.codec import Described, Symbol, Timestamp, UByte, encode

RUN, ROUNDS, MESSAGES = 100, 15, 2_000
REQUIRED_US = 2.0  # none and basic


def usual(number: int, size: int) -> bytes:
    header = encode(Described(0x70, [True, UByte(4)]))
    fields = [f"ID:{number:08}", None, None, None, None, None, Symbol("text/plain"), None, None, Timestamp(number)]
    properties = encode(Described(0x73, fields))
    application = encode(Described(0x74, {"region": "north", "attempt": number % 7, "urgent": False}))
    return header + properties + application + bare(number, size)


def bare(_: int, size: int) -> bytes:
    return encode(Described(0x75, b"x" * size))


def varied(number: int, size: int) -> bytes:
    return usual(number, size + number % 97)


SHAPES: dict[str, Callable[[int, int], bytes]] = {"bare": bare, "usual": usual, "varied": varied}


def measure(name: str, messages: list[bytes]) -> dict[str, float]:
    """Microseconds a message: `event`, and `message` for what is no message as it is stored."""
    made, restore = conversion(name, "19aa5b3c1f0-9c2e", "node"), EventToMessage().message
    runs = [Octets(messages[start : start + RUN]) for start in range(0, len(messages), RUN)]
    there, back = [], []
    for _ in range(ROUNDS):
        began = time.process_time()
        events = [converted(made, run, at * RUN + 1) for at, run in enumerate(runs)]
        there.append(time.process_time() - began)
        pairs = [pair for keys, values in events for pair in zip(keys, values, strict=True)]
        began = time.process_time()
        came = [value if is_message(key) else restore(key, value) for key, value in pairs]
        back.append(time.process_time() - began)
        assert came == messages
    per_message = 1e6 / len(messages)
    return {"event": min(there) * per_message, "message": min(back) * per_message}


def converted(made: MessageToEvent, run: Octets, first_seq: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """As a link does it."""
    keys = None if made.column is None else made.column(run, first_seq)
    return made.columns(run, first_seq) if keys is None else (keys, run)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.transforming", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args(argv)
    rows = []
    for size in (100, 1024):
        for shape, make in SHAPES.items():
            messages = [make(number, size) for number in range(MESSAGES)]
            for name in ("none", "basic", "complete"):
                row = {"transformer": name, "shape": shape, "size": size, **measure(name, messages)}
                rows.append(row)
                there, back = f"{row['event']:6.2f} us to an event", f"{row['message']:5.2f} us back"
                sys.stdout.write(f"{name:9} {shape:7} {size:5} B: {there}, {back}\n")
    worst = max(float(row["event"]) for row in rows if row["transformer"] != "complete")
    verdict = "met" if worst <= REQUIRED_US else "NOT met"
    sys.stdout.write(f"none and basic: {worst:.2f} us at most, required {REQUIRED_US:.0f} us: {verdict}\n")
    if arguments.record:
        write(rows)
    return 0 if worst <= REQUIRED_US else 1


def write(rows: list[dict[str, Any]]) -> None:
    result = {"command": "python -m bench.transforming --record", "rows": rows}
    sys.stdout.write(f"{keep(time.strftime('%Y-%m-%dT%H%M'), 'transforming', result)}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
