"""The parts of the fence in C, bound to the proton that cproton has loaded (not all of it is declared to Python)."""

from __future__ import annotations

from typing import Any

import cproton
import cproton_ffi
from cproton import ffi, lib

from gateway.amqp import _deliveries, _sends
from native_backend.log.library_version import require


def at(pointer: Any) -> int:
    """A pointer of proton's as the int that the parts in C take."""
    return int(ffi.cast("uintptr_t", pointer))


_FOUND = (cproton.PN_VERSION_MAJOR, cproton.PN_VERSION_MINOR, cproton.PN_VERSION_POINT)
require("proton", _FOUND, (0, 40, 0), (0, 41, 0), "install python-qpid-proton==0.40.0")
_deliveries.bind(cproton_ffi.__file__)
_deliveries.know(lib.PN_DELIVERY)
_sends.bind(cproton_ffi.__file__)
