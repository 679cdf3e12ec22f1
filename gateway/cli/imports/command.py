"""`realmgate import artemis | rabbitmq | um FILE`: the nodes to stdout or `--out`, what is not carried over to stderr.

Exit codes: 0 the nodes are written; 2 the file cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final, TextIO

from gateway.cli.imports.artemis import import_artemis
from gateway.cli.imports.imported import Imported, ImportProblem
from gateway.cli.imports.rabbitmq import import_rabbitmq
from gateway.cli.imports.um import import_um
from gateway.cli.output import print_error

_COULD_NOT_RUN: Final = 2


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """One import."""
    try:
        draft = _imported(arguments)
        text = draft.written(str(arguments.file))
        if arguments.out is not None:
            arguments.out.write_text(text, encoding="utf-8")
        else:
            out.write(text)
    except ImportProblem as error:
        print_error(str(error))
        return _COULD_NOT_RUN
    except OSError as error:
        print_error(f"{error.filename}: {error.strerror}")
        return _COULD_NOT_RUN
    sys.stderr.write("".join(f"{note.text(str(arguments.file))}\n" for note in draft.notes))
    words = f"{len(draft.nodes)} nodes, {len(draft.notes)} notes of what is not carried over"
    print_error(f"{arguments.file}: {words}")
    return 0


def _imported(arguments: argparse.Namespace) -> Imported:
    if arguments.broker == "artemis":
        return import_artemis(arguments.file)
    if arguments.broker == "rabbitmq":
        return import_rabbitmq(arguments.file, arguments.vhost)
    return import_um(arguments.file)
