"""Transformers of users for tests: a distribution in a directory, with entry points and a module."""

from __future__ import annotations

from pathlib import Path

SHOUT = '''
from transformers.events.native_event import NativeEvent

class Shout:
    """The message in a header, its length in capitals the value; raises for messages that say so."""
    def event(self, message):
        if b"raise" in message:
            raise RuntimeError("asked to")
        if b"nothing" in message:
            return None
        if b"wrong" in message:
            return NativeEvent("text", (), message)
        return NativeEvent(b"1;forged", (("whole", message),), b"LENGTH %d" % len(message))

    def message(self, event):
        return dict(event.headers)["whole"]

class Mute:
    def event(self, message):
        return None

class Late:
    def __init__(self):
        raise ValueError("not today")
'''


def install(directory: Path, name: str = "acme", **points: str) -> Path:
    """`install(path, shout="acme_code:Shout")`: to be put before sys.path. The code is in `NAME_code`."""
    module = directory / f"{name}_code.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(SHOUT)
    info = directory / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{point} = {target}\n" for point, target in points.items())
    (info / "entry_points.txt").write_text(f"[realmgate.transformers]\n{lines}")
    return directory
