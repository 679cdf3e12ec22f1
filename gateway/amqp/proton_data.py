"""Delivery states that proton carries as raw data: transactional-state and declared; and what our OPEN offers.

Part of the fence (`engine.py`). Proton's data are read and written through our own codec, so no buffer of proton's
leaves uncopied. Source: AMQP 1.0 part 4 section 4.5; semantics 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from cproton import ffi, lib

from gateway.amqp.error_description import ErrorDescription, shortened
from transformers.codec import AmqpMap, Array, DecodeError, Described, Symbol, UInt, ULong, decode, encode

TRANSACTIONAL: Final = 0x34
DECLARED: Final = 0x33
ACCEPTED: Final = 0x24
REJECTED: Final = 0x25
_ERROR: Final = 0x1D
_ROOM: Final = 4096  # octets of a state that are looked at; an annotation map of `modified` may need more
_ROOM_MAX: Final = 1 << 20
_OUTCOMES: Final = {0x24: "accepted", 0x25: "rejected", 0x26: "released", 0x27: "modified"}
_room = ffi.new("char[]", _ROOM)
_octets = ffi.buffer(_room)


def transactional_state(delivery: Any) -> tuple[bytes, str, Any]:
    """The txn-id of the peer's transactional-state, the outcome in it as a word of the table `settle` (`unstated` where
    it names none), and that outcome as it came. Empty and `unknown` where it cannot be read."""
    return _read(octets_of(lib.pn_disposition_data(lib.pn_delivery_remote(delivery))))


def octets_of(data: Any) -> bytes:
    """Proton's data, encoded; nothing where that is too much."""
    size = lib.pn_data_encode(data, _room, _ROOM)
    if size >= 0:
        return bytes(_octets[:size])
    size = int(lib.pn_data_encoded_size(data))
    if not 0 < size <= _ROOM_MAX:
        return b""
    large = ffi.new("char[]", size)
    return bytes(ffi.buffer(large)[: max(0, lib.pn_data_encode(data, large, size))])


@lru_cache(maxsize=64)
def _read(state: bytes) -> tuple[bytes, str, Any]:
    """Deliveries of one transaction say the same, mostly."""
    try:
        fields, _ = decode(state)
    except DecodeError:
        return b"", "unknown", None
    if not isinstance(fields, list) or not fields or not isinstance(fields[0], bytes):
        return b"", "unknown", None
    outcome = fields[1] if len(fields) > 1 else None
    return fields[0], _outcome(outcome), outcome


def _outcome(outcome: Any) -> str:
    if outcome is None:
        return "unstated"
    code = outcome.descriptor if isinstance(outcome, Described) else None
    word = _OUTCOMES.get(code, "unknown") if isinstance(code, int) else "unknown"
    if word != "modified":
        return word
    flags = outcome.value if isinstance(outcome.value, list) else []
    failed = "-failed" if flags[:1] == [True] else ""
    return word + failed + ("-undeliverable" if flags[1:2] == [True] else "")


def tell_in_transaction(pointer: Any, state: bytes) -> None:
    """Give a delivery that state of `provisional`; it stays unsettled."""
    set_data(lib.pn_disposition_data(lib.pn_delivery_local(pointer)), state)
    lib.pn_delivery_update(pointer, TRANSACTIONAL)


def provisional(transaction: bytes, outcome: str, condition: str | None, description: str) -> bytes:
    """A transactional-state with an outcome, encoded: accepted, or rejected with its error."""
    if outcome == "accepted":
        return encode([transaction, Described(ULong(ACCEPTED), [])])
    rejection = error(condition or "amqp:internal-error", description)
    return encode([transaction, Described(ULong(REJECTED), [rejection])])


def error(condition: str, description: str) -> Described:
    """An error of AMQP; a complaint brings its info map."""
    fields: list[Any] = [Symbol(condition), shortened(description)]
    if isinstance(description, ErrorDescription):
        fields.append(AmqpMap([(Symbol(key), _as_amqp(value)) for key, value in description.info]))
    return Described(ULong(_ERROR), fields)


def _as_amqp(value: str | int | bool | bytes) -> Any:
    return UInt(value) if isinstance(value, int) and not isinstance(value, bool) else value


def tell_declared(pointer: Any, transaction: bytes) -> None:
    set_data(lib.pn_disposition_data(lib.pn_delivery_local(pointer)), encode([transaction]))
    lib.pn_delivery_update(pointer, DECLARED)
    lib.pn_delivery_settle(pointer)


def offer_to_connection(connection: Any, names: Sequence[str]) -> None:
    """In our OPEN; it must not have gone out."""
    set_data(lib.pn_connection_offered_capabilities(connection), _symbols(names))


def say_of_connection(connection: Any, properties: Sequence[tuple[Symbol, Any]]) -> None:
    """As properties of our OPEN; it must not have gone out."""
    set_data(lib.pn_connection_properties(connection), encode(AmqpMap(list(properties))))


def _symbols(names: Sequence[str]) -> bytes:
    return encode(Array(0xA3, [Symbol(name) for name in names]))


def set_data(data: Any, octets: bytes) -> None:
    """Give proton a value that is encoded already."""
    lib.pn_data_clear(data)
    taken = lib.pn_data_decode(data, octets, len(octets))
    assert taken == len(octets), f"proton took {taken} of {len(octets)} octets of a state"
    lib.pn_data_rewind(data)
