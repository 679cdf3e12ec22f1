"""The words of `realmgate import`, as the command line takes them."""

from __future__ import annotations

import argparse
from pathlib import Path

_FROM = {
    "artemis": ("broker.xml of Apache Artemis", "broker.xml"),
    "rabbitmq": ("definitions that RabbitMQ exported", "definitions.json"),
    "um": ("the realm that Universal Messaging exported", "realm.xml"),
}


def add_import(parser: argparse.ArgumentParser) -> None:
    brokers = parser.add_subparsers(dest="broker", required=True, metavar="BROKER")
    for name, (about, file) in _FROM.items():
        broker = brokers.add_parser(name, help=about, allow_abbrev=False)
        broker.add_argument("file", metavar=file.upper(), type=Path, help=about)
        broker.add_argument("--out", metavar="FILE", type=Path, help="write the nodes there; default: stdout")
        if name == "rabbitmq":
            broker.add_argument("--vhost", metavar="NAME", default="/", help="its queues and exchanges; default: /")
