"""The termini of an ATTACH, in the words of the mapping tables. Read from the frame, not from proton: proton loses
default-outcome, unknown distribution modes and what a null-address terminus says (`semantics.md` 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from gateway.config.addresses import SHIPPED, Address, Addresses
from gateway.frames.frames import Frame
from gateway.terminus.dynamic_nodes import lifetime, wrong_terminus
from gateway.terminus.filters import Filters, read_filters
from native_backend.nodes.words import NodeKind
from transformers.codec import Array, Described, Symbol

_ROLE, _SOURCE, _TARGET, _DESIRED = 2, 5, 6, 12
_ADDRESS, _DURABLE, _EXPIRY, _TIMEOUT, _DYNAMIC, _PROPERTIES, _MODE, _FILTER, _DEFAULT_OUTCOME = range(9)
_OUTCOMES_AT, _SOURCE_CAPABILITIES, _TARGET_CAPABILITIES = 9, 10, 6
_FOR_THE_ANSWER: Final = (7, 11, 12, 13)  # unsettled, capabilities, properties
_SYMBOLS, _NAME_CHARACTERS = 0xA3, 60
_COORDINATOR: Final = 0x30
_DURABILITY: Final = {0: "none", 1: "configuration", 2: "unsettled-state"}
_OUTCOMES: Final = {0x24: "accepted", 0x25: "rejected", 0x26: "released", 0x27: "modified"}
_OUTCOME_NAMES: Final = {f"amqp:{name}:list": name for name in _OUTCOMES.values()}
_KINDS: Final[dict[str, NodeKind]] = {
    "queue": "queue",
    "topic": "channel",
    "temporary-queue": "queue",
    "temporary-topic": "channel",
}
_TEMPORARY: Final = frozenset({"temporary-queue", "temporary-topic"})


@dataclass(frozen=True, slots=True)
class Terminus:
    """One side of a link that stands in the realm. Every word down to `filter` is a value of an axis of the table
    `attach`, but `node`."""

    direction: str  # publish, subscribe
    address: str  # node, none, dynamic, coordinator
    asked: str  # the address as it was written
    node: str
    distribution_mode: str
    source_durability: str
    default_outcome: str
    sharing: str  # exclusive, shared
    filters: Filters
    kind: NodeKind | None  # that the prefix says, else a capability; None: any
    wanted_kind: NodeKind  # of a node made on attach
    outcomes: frozenset[str] | None  # that were agreed on; None: all of them
    all_containers: bool  # what is shared is shared by all containers
    expiry: str  # the policy as it was written; empty: none was
    timeout_s: int
    lifetime: str  # of a dynamic node: close, no-links, no-messages, no-links-or-messages
    temporary: bool  # a dynamic node is a temporary destination of JMS: its connection's own
    wrong: str  # how it contradicts itself; empty: it does not

    @property
    def filter(self) -> str:
        return self.filters.kind


def read_terminus(attach: Frame, addresses: Addresses = SHIPPED) -> Terminus:
    """The terminus that the realm is asked for: the target of a publisher, the source of a consumer."""
    publishing = attach.field(_ROLE) is False  # the peer is the sender
    terminus = attach.field(_TARGET if publishing else _SOURCE)
    fields = _fields(terminus)
    address = _at(fields, _ADDRESS)
    source = [] if publishing else fields
    capabilities = _at(fields, _TARGET_CAPABILITIES if publishing else _SOURCE_CAPABILITIES)
    coordinator = isinstance(terminus, Described) and terminus.descriptor == _COORDINATOR
    named = addresses.read(address) if isinstance(address, str) else Address("", None)
    kind = named.kind or _capable_kind(capabilities)
    return Terminus(
        direction="publish" if publishing else "subscribe",
        address="coordinator" if coordinator else _address_class(address, _at(fields, _DYNAMIC)),
        asked=address if isinstance(address, str) else "",
        node=named.node,
        distribution_mode=_mode(_at(source, _MODE)),
        source_durability=_durability(_at(source, _DURABLE)),
        default_outcome=_default_outcome(_at(source, _DEFAULT_OUTCOME)),
        sharing="shared" if not publishing and "shared" in _names(capabilities) else "exclusive",
        filters=read_filters(_at(source, _FILTER)),
        kind=kind,
        wanted_kind=kind or addresses.default_kind,
        outcomes=_outcomes(_at(source, _OUTCOMES_AT)),
        all_containers="global" in _names(capabilities) + _names(attach.field(_DESIRED)),
        expiry=str(_at(source, _EXPIRY) or ""),
        timeout_s=_seconds(_at(source, _TIMEOUT)),
        lifetime=lifetime(_at(fields, _PROPERTIES)),
        temporary=not _TEMPORARY.isdisjoint(_names(capabilities)),
        wrong="" if coordinator else wrong_terminus(address, _at(fields, _DYNAMIC), _at(fields, _PROPERTIES)),
    )


def read_expiry(attach: Frame) -> str:
    """The expiry policy of the terminus that the realm is asked for, as it was written; empty: none was."""
    publishing = attach.field(_ROLE) is False
    return str(_at(_fields(attach.field(_TARGET if publishing else _SOURCE)), _EXPIRY) or "")


def read_default_outcome(attach: Frame) -> str:
    """A value of the axis `default_outcome`, or `unknown`."""
    return _default_outcome(_at(_fields(attach.field(_SOURCE)), _DEFAULT_OUTCOME))


def agreed_outcomes(attach: Frame) -> frozenset[str] | None:
    """What the peer's source lists, also where the peer sends; None: nothing, so all of them."""
    return _outcomes(_at(_fields(attach.field(_SOURCE)), _OUTCOMES_AT))


def answered(attach: Frame) -> Frame:
    """What is asked of it as long as its link is there: the largest of what a peer may say, its properties, filters and
    capabilities, was for the answer."""
    fields = [None if at in _FOR_THE_ANSWER else field for at, field in enumerate(attach.fields)]
    for at in (_SOURCE, _TARGET):
        terminus = attach.field(at)
        if isinstance(terminus, Described) and isinstance(terminus.value, list):
            fields[at] = Described(terminus.descriptor, _without_maps(terminus.value, at == _SOURCE))
    return Frame(attach.channel, attach.code, tuple(fields), None, attach.invalid)


def _without_maps(terminus: list[Any], is_source: bool) -> list[Any]:
    kept = terminus[:_PROPERTIES]
    if is_source and (outcomes := _outcomes(_at(terminus, _OUTCOMES_AT))) is not None:
        names = sorted(outcomes & {*_OUTCOMES.values()}) or [min(outcomes)[:_NAME_CHARACTERS]]
        empty = [None] * (_OUTCOMES_AT - len(kept))
        kept = [*kept, *empty, Array(_SYMBOLS, [Symbol(f"amqp:{name}:list") for name in names])]
    return kept


def _fields(terminus: Any) -> list[Any]:
    value = terminus.value if isinstance(terminus, Described) else None
    return value if isinstance(value, list) else []


def _at(fields: list[Any], index: int) -> Any:
    return fields[index] if index < len(fields) else None


def _address_class(address: Any, dynamic: Any) -> str:
    if dynamic is True:
        return "dynamic"
    return "node" if isinstance(address, str) and address else "none"


def _mode(mode: Any) -> str:
    if mode is None:
        return "unset"
    return str(mode) if str(mode) in ("move", "copy") else "other"


def _durability(durable: Any) -> str:
    return _DURABILITY.get(durable, "none") if isinstance(durable, int) else "none"


def _default_outcome(outcome: Any) -> str:
    """`unknown` is refused before anything else is asked (I-1)."""
    if outcome is None:
        return "unset"
    if not isinstance(outcome, Described):
        return "unknown"
    code = outcome.descriptor
    name = _OUTCOMES.get(code, "unknown") if isinstance(code, int) else _OUTCOME_NAMES.get(str(code), "unknown")
    if name != "modified":
        return name
    fields = outcome.value if isinstance(outcome.value, list) else []
    failed = "-failed" if _at(fields, 0) is True else ""
    return name + failed + ("-undeliverable" if _at(fields, 1) is True else "")


def _outcomes(symbols: Any) -> frozenset[str] | None:
    """A source that names none can be given any (I-3)."""
    names = symbols.items if isinstance(symbols, Array) else [] if symbols is None else [symbols]
    return frozenset(str(name).removeprefix("amqp:").removesuffix(":list") for name in names) or None


def _names(capabilities: Any) -> list[str]:
    """Several symbols, or one by itself."""
    if capabilities is None:
        return []
    return [str(name) for name in (capabilities.items if isinstance(capabilities, Array) else [capabilities])]


def _seconds(timeout: Any) -> int:
    return timeout if isinstance(timeout, int) and timeout > 0 else 0


def _capable_kind(capabilities: Any) -> NodeKind | None:
    return next((_KINDS[name] for name in _names(capabilities) if name in _KINDS), None)
