"""AMQP transactions beside Artemis: `python -m bench.transactions [--repeat N] [--seconds N]`, some four minutes.

Of 1, 10 and 100 messages, by 1 client and by 16 at once; each declares, posts its messages with the discharge behind
them, and waits for the answer to the discharge. See `bench.clients`.
"""

from __future__ import annotations

import argparse

from bench.clients import Many, measure

CASES = [Many("transact", clients, messages) for clients in (1, 16) for messages in (1, 10, 100)]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.transactions")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    measure("transactions", CASES, arguments.repeat, arguments.seconds)


if __name__ == "__main__":
    main()
