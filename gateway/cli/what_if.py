"""`realmgate what-if --dir DIR | --profile NAME`: what other tables would have decided about the recorded facts. The
tables are read and checked as a gateway does it before a reload. The reconciliation decides by them, in a process of
its own, from the document that they expand to.

Exit codes: 0 nothing would have been different, 1 something would, or cannot be decided, 2 the tables have problems, or
it could not run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from typing import NoReturn

from gateway.cli.output import print_error
from gateway.config.settings import Settings
from mappings.compiler.loading import Loader
from transformers.events.installed import complaint_about

_COULD_NOT_RUN = 2
_PASSED = {
    "since": "--from",
    "until": "--to",
    "lines": "--lines",
    "out": "--out",
    "master": "--master",
    "jars": "--jars",
}
_REPEATED = {"assume": "--assume", "conf": "--conf"}


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """Becomes the reconciliation's process, unless the tables cannot be used."""
    if arguments.dir is None and arguments.profile is None:
        print_error("what-if: name the other tables: --dir DIR, --profile NAME, or both")
        return _COULD_NOT_RUN
    directory = arguments.dir or settings.mappings.directory
    profile = arguments.profile or settings.mappings.profile
    checked = Loader(complaint_about).answer(directory, profile)
    if "problems" in checked:
        sys.stderr.write("".join(f"{problem}\n" for problem in checked["problems"]))
        return _COULD_NOT_RUN
    if checked["errors"] is not None and directory is not None:
        print_error(f"note: {directory / 'errors.yaml'} is not asked: the realm's answers stand as they are recorded")
    name = f"the tables in {directory}" if directory is not None else "the shipped tables"
    _become(arguments, json.dumps(checked["document"]), name)


def _become(arguments: argparse.Namespace, document: str, name: str) -> NoReturn:
    """The document is a file without a name, which goes with its last process."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  # it stays open: the next process reads it
    file.write(document.encode())
    file.flush()
    file.seek(0)
    os.set_inheritable(file.fileno(), True)
    words = ["--tables", f"/dev/fd/{file.fileno()}", "--name", name, "--config", str(arguments.config)]
    for name, option in _PASSED.items():
        value = getattr(arguments, name)
        words += [option, value] if value is not None else []
    for name, option in _REPEATED.items():
        words += [word for value in getattr(arguments, name) for word in (option, value)]
    words += ["--json"] if arguments.json else []
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "reconciliation", "what-if", *words])  # noqa: S606
