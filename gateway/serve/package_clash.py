"""Whether another package named `transformers` (Hugging Face has one) is in the place of ours, or mixed with it.

Both have files in the same folder of one environment: what was installed last overwrites files of the other.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_NAME: Final = "transformers"
_OURS: Final = "AMQP message bytes to native events and back."  # how the docstring of ours begins
_REMEDY: Final = (
    "install realmgate in an environment of its own: python3 -m venv DIR, then DIR/bin/pip install realmgate"
)


def replaced() -> str:
    """What is wrong where `import transformers` finds another package, and what to do; empty where it finds ours."""
    spec = find_spec(_NAME)
    place = spec.origin if spec is not None else None
    if place is not None and _OURS in Path(place).read_text(encoding="utf-8", errors="replace"):
        return ""
    where = f"the package in {place}" if place is not None else "nothing"
    return f"realmgate has a Python package named {_NAME}, but {sys.executable} finds {where}{_other()}: {_REMEDY}"


def mixed() -> str:
    """What may become wrong where another one is installed besides, and what to do; else empty."""
    other = _other()
    return f"the environment of {sys.executable} has another package named {_NAME}{other}: {_REMEDY}" if other else ""


def _other() -> str:
    from importlib.metadata import PackageNotFoundError, version  # takes a tenth of the time of a command

    try:
        return f" ({_NAME} {version(_NAME)}, which is Hugging Face's)"
    except PackageNotFoundError:
        return ""
