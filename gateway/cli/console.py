"""`realmgate console`: pages for operators, in a process of its own. It reads its own arguments (`console.settings`).

Errors: `NoConfiguration`, where neither a gateway nor a configuration is named and none is found.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from gateway.cli.configuration.search import with_configuration


def run(argv: list[str]) -> NoReturn:
    """Becomes the console's process: its exit code, and the signals it is sent, are its own. -P: the installed console,
    not what lies in the directory we happen to be in."""
    names_gateways = any(word == "--gateway" or word.startswith("--gateway=") for word in argv)
    argv = argv if names_gateways else with_configuration(argv)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "console", *argv])  # noqa: S606
