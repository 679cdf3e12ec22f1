"""The words of `realmgate config`, as the command line takes them."""

from __future__ import annotations

import argparse
from pathlib import Path

from gateway.cli.configuration.search import add_config


def add_configuration(config: argparse.ArgumentParser) -> None:
    actions = config.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="list everything that is wrong, as serve does", allow_abbrev=False)
    show = actions.add_parser("show", help="show every key, its value, and where it comes from", allow_abbrev=False)
    show.add_argument("--json", action="store_true", help="for programs")
    actions.add_parser("schema", help="print the JSON Schema of a configuration, for editors", allow_abbrev=False)
    init = actions.add_parser("init", help="write a first file; never over another one", allow_abbrev=False)
    init.add_argument("--kafka", metavar="BOOTSTRAP", help="a realm on Kafka at HOST:PORT,...; default: embedded")
    init.add_argument("--config", metavar="FILE", type=Path, required=True, help="the file to write")
    for action in (check, show):
        add_config(action)
