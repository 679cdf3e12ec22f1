"""The words of `realmgate what-if`, as the command line takes them."""

from __future__ import annotations

import argparse
from pathlib import Path

from gateway.cli.configuration.search import add_config
from mappings.language.vocabulary import PROFILES


def add_what_if(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dir", type=Path, metavar="DIR", help="holds tables/; default: as configured, or the shipped")
    parser.add_argument("--profile", choices=PROFILES, help="default: as configured")
    parser.add_argument("--from", dest="since", metavar="ISO", help="decide from this ISO time on (UTC)")
    parser.add_argument("--to", dest="until", metavar="ISO", help="decide what is before this ISO time (UTC)")
    assume = "of a fact that the report names as not recorded; may be repeated"
    parser.add_argument("--assume", metavar="FACT=VALUE", action="append", default=[], help=assume)
    parser.add_argument("--lines", metavar="N", help="nodes and peers named of each change; default: 10")
    parser.add_argument("--out", metavar="DIR", help="keep the answer there, and what was read for it")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--master", metavar="URL", help="Spark's master; default: two cores of this machine")
    parser.add_argument("--conf", metavar="KEY=VALUE", action="append", default=[], help="a setting of Spark")
    parser.add_argument("--jars", metavar="DIR", help="where Spark's connector for Kafka is")
    add_config(parser)
