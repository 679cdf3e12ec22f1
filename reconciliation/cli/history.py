"""`realmgate reconcile --history`: the records of earlier reconciliations. No realm is read, and no Spark is started
for a directory of this machine.

Exit code: 0 all records can be read, 1 some are damaged, 2 could not run.
"""

from __future__ import annotations

import argparse
from typing import TextIO

import orjson

from reconciliation.cli.places import opened
from reconciliation.history import kept
from reconciliation.model.settings import SettingsError
from reconciliation.report import trend

READ, DAMAGED = 0, 1


def show(arguments: argparse.Namespace, out: TextIO) -> int:
    with opened(arguments) as place:
        if not place.history.exists():
            raise SettingsError(f"there is no {place.history}: name a report's directory by --out, or --history-in")
        history = kept.read(place.history)
    if arguments.json:
        out.write(orjson.dumps(trend.document(history), option=orjson.OPT_INDENT_2).decode() + "\n")
    else:
        out.write(trend.write(history))
    return DAMAGED if history.damaged else READ
