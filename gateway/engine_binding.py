"""The parts of the fence in C, bound to the proton that cproton has loaded (not all of it is declared to Python).

May import: `cproton`, `gateway.engine_runs`, `gateway.engine_sends`.
"""

from __future__ import annotations

import ctypes

import cproton_ffi
from cproton import lib

from gateway import engine_runs, engine_sends

_PROTON = ctypes.CDLL(cproton_ffi.__file__)


def _addresses(names: list[str]) -> dict[str, int]:
    return {name: ctypes.cast(getattr(_PROTON, name), ctypes.c_void_p).value or 0 for name in names}


engine_runs.bind(_addresses(engine_runs.names()))
engine_runs.know(lib.PN_DELIVERY)
engine_sends.bind(_addresses(engine_sends.names()))
