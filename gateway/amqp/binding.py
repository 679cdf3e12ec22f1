"""The parts of the fence in C, bound to the proton that cproton has loaded (not all of it is declared to Python).

May import: `cproton`, `gateway.engine_runs`, `gateway.engine_sends`.
"""

from __future__ import annotations

import ctypes
from typing import Any

import cproton_ffi
from cproton import ffi, lib

from gateway import engine_runs, engine_sends

_PROTON = ctypes.CDLL(cproton_ffi.__file__)


def _addresses(names: list[str]) -> dict[str, int]:
    return {name: ctypes.cast(getattr(_PROTON, name), ctypes.c_void_p).value or 0 for name in names}


def at(pointer: Any) -> int:
    """A pointer of proton's as the int that the parts in C take."""
    return int(ffi.cast("uintptr_t", pointer))


engine_runs.bind(_addresses(engine_runs.names()))
engine_runs.know(lib.PN_DELIVERY)
engine_sends.bind(_addresses(engine_sends.names()))
