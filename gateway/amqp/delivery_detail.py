"""What a consumer says beside the name of its outcome, read off proton's delivery and sent back as it came.

Part of the fence (`engine.py`). Source: AMQP 1.0 part 3, 3.4.3 and 3.4.5; semantics 2.H.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cproton import ffi, lib

from gateway.amqp.proton_data import octets_of, set_data
from native_backend.state.outcome_detail import OutcomeDetail
from transformers.codec import AmqpMap, Described, Symbol, encode

_REST_BYTES: Final = 64  # of a disposition, around what a state says
_MAPS: Final = (b"\xc1", b"\xd1")
_EMPTY: Final = OutcomeDetail()


def read_detail(delivery: Any, state: str) -> OutcomeDetail | None:
    """Of a delivery that its consumer has given that state; None: nothing."""
    disposition = lib.pn_delivery_remote(delivery)
    if state.startswith("modified"):
        annotations = _map(lib.pn_disposition_annotations(disposition))
        return OutcomeDetail(annotations=annotations) if annotations else None
    condition = lib.pn_disposition_condition(disposition) if state == "rejected" else None
    if condition is None or not lib.pn_condition_is_set(condition):
        return None
    name, description = lib.pn_condition_get_name(condition), lib.pn_condition_get_description(condition)
    return OutcomeDetail(_text(name), _text(description), _map(lib.pn_condition_info(condition)))


def detail_of(outcome: Any) -> OutcomeDetail | None:
    """The same of an outcome that came inside of a transactional state."""
    fields = outcome.value if isinstance(outcome, Described) and isinstance(outcome.value, list) else []
    if len(fields) > 2 and isinstance(fields[2], AmqpMap):  # modified
        return OutcomeDetail(annotations=encode(fields[2]))
    error = fields[0].value if fields and isinstance(fields[0], Described) else None  # rejected
    if not isinstance(error, list) or not error or not isinstance(error[0], Symbol):
        return None
    description, info = (*error[1:3], None, None)[:2]
    fitted = description if isinstance(description, str) else ""
    return OutcomeDetail(str(error[0]), fitted, encode(info) if isinstance(info, AmqpMap) else b"")


def _text(octets: Any) -> str:
    return ffi.string(octets).decode(errors="replace") if octets else ""


def _map(data: Any) -> bytes:
    octets = octets_of(data)
    return octets if octets.startswith(_MAPS) else b""


def tell_back(pointers: Iterable[Any], state: str, detail: OutcomeDetail | None, frame_size_max: int) -> None:
    """The outcome that is sent next carries what the consumer stated, as far as its frames have room: first the maps
    are left out, then the rest."""
    fitted = _fitting(detail or _EMPTY, frame_size_max - _REST_BYTES)
    for pointer in pointers:
        local = lib.pn_delivery_local(pointer)
        if state == "rejected":
            _tell_error(lib.pn_disposition_condition(local), fitted)
        else:
            lib.pn_disposition_set_failed(local, "failed" in state)
            lib.pn_disposition_set_undeliverable(local, "undeliverable" in state)
            if fitted.annotations:
                set_data(lib.pn_disposition_annotations(local), fitted.annotations)


def _tell_error(condition: Any, fitted: OutcomeDetail) -> None:
    lib.pn_condition_clear(condition)
    if fitted.condition:
        lib.pn_condition_set_name(condition, fitted.condition.encode())
        if fitted.description:
            lib.pn_condition_set_description(condition, fitted.description.encode())
        if fitted.info:
            set_data(lib.pn_condition_info(condition), fitted.info)


def _fitting(fitted: OutcomeDetail, room: int) -> OutcomeDetail:
    words = len(fitted.condition.encode()) + len(fitted.description.encode())
    if words > room:
        return _EMPTY
    if words + len(fitted.info) + len(fitted.annotations) > room:
        return OutcomeDetail(fitted.condition, fitted.description)
    return fitted
