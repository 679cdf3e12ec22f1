"""What our ATTACH says of a link, as typed values: both termini, settle modes, sizes; written by our own codec.

A field that is None is left out, so its default holds (part 3, 3.5.3, 3.5.4). What a peer's own terminus says is read
here, too: only what has the type and a value of the standard's is kept, so that nothing ill-typed goes out again.
Source: AMQP 1.0 part 2, 2.7.3; part 3, 3.5.3 to 3.5.9; semantics O-3, L-1, M-2, M-6, K-1, I-5, I-6, J-2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from transformers.codec import AmqpMap, Array, Described, Symbol, UByte, UInt, ULong

SOURCE, TARGET, COORDINATOR = 0x28, 0x29, 0x30
OUTCOMES: Final = ("accepted", "rejected", "released", "modified")
DURABILITIES: Final = ("none", "configuration", "unsettled-state")
EXPIRIES: Final = ("link-detach", "session-end", "connection-close", "never")
MODES: Final = ("move", "copy")
_NAMES: Final = {"amqp:source:list": SOURCE, "amqp:target:list": TARGET, "amqp:coordinator:list": COORDINATOR}
_CODES: Final = {f"amqp:{name}:list": code for code, name in enumerate(OUTCOMES, 0x24)}
_MODIFIED: Final = 0x27


@dataclass(frozen=True, slots=True)
class Lasting:
    """What source and target have in common: an address, how long what is kept lasts, and a dynamic node."""

    address: str | None = None
    durable: int | None = None  # an index of DURABILITIES
    expiry: str | None = None  # one of EXPIRIES
    timeout_s: int | None = None
    dynamic: bool | None = None
    properties: AmqpMap | None = None  # of the dynamic node

    def fields(self) -> list[Any]:
        durable = None if self.durable is None else UInt(self.durable)
        timeout = None if self.timeout_s is None else UInt(self.timeout_s)
        return [self.address, durable, _symbol(self.expiry), timeout, self.dynamic, self.properties]


@dataclass(frozen=True, slots=True)
class Source:
    lasting: Lasting = Lasting()
    mode: str | None = None  # one of MODES
    filters: AmqpMap | None = None
    default_outcome: Described | None = None
    outcomes: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()

    def described(self) -> Described:
        own = [_symbol(self.mode), self.filters, self.default_outcome, _symbols(self.outcomes)]
        return _described(SOURCE, [*self.lasting.fields(), *own, _symbols(self.capabilities)])


@dataclass(frozen=True, slots=True)
class Target:
    lasting: Lasting = Lasting()
    capabilities: tuple[str, ...] = ()

    def described(self) -> Described:
        return _described(TARGET, [*self.lasting.fields(), _symbols(self.capabilities)])


@dataclass(frozen=True, slots=True)
class Coordinator:
    capabilities: tuple[str, ...] = ()

    def described(self) -> Described:
        return _described(COORDINATOR, [_symbols(self.capabilities)])


@dataclass(frozen=True, slots=True)
class AttachAnswer:
    """All of it, but for name, handle and role. A terminus of None: there is none."""

    source: Source | None
    target: Target | Coordinator | None
    sender_settle_mode: int = 2  # 0 unsettled, 1 settled, 2 mixed
    settles_second: bool = False
    message_size_max: int | None = None  # octets of one message that we take; None where we are the sender
    resumed: bool = False  # the peer has an unsettled map: so have we, with nothing in it

    def fields(self, sends: bool) -> list[Any]:
        """From snd-settle-mode to max-message-size. `sends`: our role is sender."""
        return [
            UByte(self.sender_settle_mode),
            UByte(self.settles_second),
            None if self.source is None else self.source.described(),
            None if self.target is None else self.target.described(),
            AmqpMap([]) if self.resumed else None,
            None,
            UInt(0) if sends else None,
            None if self.message_size_max is None else ULong(self.message_size_max),
        ]


# -- reading what a peer says of its own


def fields_of(terminus: Any, code: int) -> list[Any] | None:
    """Those of a source, a target or a coordinator; None: it is none."""
    if not isinstance(terminus, Described) or not isinstance(terminus.value, list):
        return None
    descriptor = terminus.descriptor
    number = descriptor if isinstance(descriptor, int) else _NAMES.get(str(descriptor))
    return terminus.value if number == code else None


def read_source(terminus: Any) -> Source | None:
    fields = fields_of(terminus, SOURCE)
    if fields is None:
        return None
    mode, filters, default, outcomes, capabilities = _padded(fields, 11)[6:11]
    return Source(
        _read_lasting(fields),
        str(mode) if type(mode) is Symbol and mode in MODES else None,
        read_filter_set(filters),
        read_outcome(default),
        read_symbols(outcomes),
        read_symbols(capabilities),
    )


def read_target(terminus: Any) -> Target | None:
    fields = fields_of(terminus, TARGET)
    return None if fields is None else Target(_read_lasting(fields), read_symbols(_padded(fields, 7)[6]))


def _read_lasting(fields: list[Any]) -> Lasting:
    address, durable, expiry, timeout, dynamic, properties = _padded(fields, 6)[:6]
    return Lasting(
        address if type(address) is str else None,
        int(durable) if type(durable) is UInt and durable < len(DURABILITIES) else None,
        str(expiry) if type(expiry) is Symbol and expiry in EXPIRIES else None,
        int(timeout) if type(timeout) is UInt else None,
        dynamic if type(dynamic) is bool else None,
        properties if _has_symbols_for_keys(properties) else None,
    )


def read_filter_set(filters: Any) -> AmqpMap | None:
    """Keys are symbols, values described (3.5.8); those of null are no filters."""
    if not _has_symbols_for_keys(filters):
        return None
    pairs = [(key, value) for key, value in filters.pairs if isinstance(value, Described)]
    return AmqpMap(pairs) if pairs else None


def read_outcome(outcome: Any) -> Described | None:
    """By its number, with the flags of `modified` and nothing else."""
    if not isinstance(outcome, Described) or not isinstance(outcome.value, list):
        return None
    descriptor = outcome.descriptor
    code = descriptor if isinstance(descriptor, int) else _CODES.get(str(descriptor))
    if code is None or code not in _CODES.values():
        return None
    flags = outcome.value[:2] if code == _MODIFIED else []
    return _described(code, [flag if type(flag) is bool else None for flag in flags])


def read_symbols(value: Any) -> tuple[str, ...]:
    """Several, or one by itself; none where anything else is among them."""
    items = value.items if isinstance(value, Array) else [] if value is None else [value]
    return tuple(map(str, items)) if all(type(item) is Symbol for item in items) else ()


def _has_symbols_for_keys(value: Any) -> bool:
    return isinstance(value, AmqpMap) and all(type(key) is Symbol for key, _ in value.pairs)


def _padded(fields: list[Any], count: int) -> list[Any]:
    return fields + [None] * (count - len(fields))


def _described(code: int, fields: list[Any]) -> Described:
    """Nulls at the end are left out."""
    while fields and fields[-1] is None:
        fields = fields[:-1]
    return Described(ULong(code), fields)


def _symbol(name: str | None) -> Symbol | None:
    return None if name is None else Symbol(name)


def _symbols(names: tuple[str, ...]) -> Array | None:
    """An array has one encoding for all of its items."""
    long = any(len(name) > 255 for name in names)
    return Array(0xB3 if long else 0xA3, [Symbol(name) for name in names]) if names else None
