"""Many connections with one message in flight each, beside Artemis: `python -m bench.connections [--clients N]
[--repeat N] [--seconds N]`, some two minutes. One connection alone is measured, too: what a message costs there and
back. See `bench.clients`.
"""

from __future__ import annotations

import argparse

from bench.clients import Many, measure


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.connections")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    arguments = parser.parse_args()
    measure("connections", [Many("send", 1), Many("send", arguments.clients)], arguments.repeat, arguments.seconds)


if __name__ == "__main__":
    main()
