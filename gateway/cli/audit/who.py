"""Who gives a command: the user of this process, as the operating system knows it, and its host."""

from __future__ import annotations

import os
import pwd
import socket
from typing import Final

CHARACTERS_MAX: Final = 200
"""Of who gave a command, and of why."""


def who_am_i() -> str:
    """USER@HOST. The environment is not asked: it says what its user likes."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user may have no name
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()}"[:CHARACTERS_MAX]
