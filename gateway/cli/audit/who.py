"""Who gives a command: the user of this process, as the operating system knows it, and its host; and for whom."""

from __future__ import annotations

import os
import pwd
import socket
from typing import Final

CHARACTERS_MAX: Final = 200
"""Of who gave a command, and of why."""
_NAME: Final = 100  # characters, so that both have room


def who_am_i(behalf: str = "") -> str:
    """USER@HOST, or `ann (by USER@HOST)` for ann. The environment is not asked: it says what its user likes."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user may have no name
        user = f"uid-{os.getuid()}"
    who = f"{user}@{socket.gethostname()}"
    return (f"{behalf[:_NAME]} (by {who})" if behalf else who)[:CHARACTERS_MAX]
