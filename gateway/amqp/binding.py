"""The parts of the fence in C, bound to the proton that cproton has loaded (not all of it is declared to Python)."""

from __future__ import annotations

from typing import Any

import cproton_ffi
from cproton import ffi, lib

from gateway.amqp import _deliveries, _sends


def at(pointer: Any) -> int:
    """A pointer of proton's as the int that the parts in C take."""
    return int(ffi.cast("uintptr_t", pointer))


_deliveries.bind(cproton_ffi.__file__)
_deliveries.know(lib.PN_DELIVERY)
_sends.bind(cproton_ffi.__file__)
