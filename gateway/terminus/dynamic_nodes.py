"""What an ATTACH asks of a dynamic node, and what its answer says of the one that was made.

Descriptors of lifetime policies may be numeric or symbolic. Source: AMQP 1.0 part 3, 3.5.3, 3.5.4, 3.5.9 to 3.5.13;
semantics.md M-1 to M-8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from transformers.codec import AmqpMap, Array, Described, Symbol, ULong

LIFETIMES: Final = {0x2B: "close", 0x2C: "no-links", 0x2D: "no-messages", 0x2E: "no-links-or-messages"}
_SYMBOLS: Final = {f"amqp:delete-on-{name}:list": name for name in LIFETIMES.values()}
_LIFETIME, _MODES = "lifetime-policy", "supported-dist-modes"


@dataclass(frozen=True, slots=True)
class DynamicNode:
    """What the answer to the attach states."""

    address: str
    lifetime: str
    kind: str

    @property
    def properties(self) -> AmqpMap:
        """`dynamic-node-properties` as they are."""
        descriptor = next(code for code, name in LIFETIMES.items() if name == self.lifetime)
        modes = [Symbol("move"), Symbol("copy")] if self.kind == "queue" else [Symbol("copy")]
        policy = Described(ULong(descriptor), [])
        return AmqpMap([(Symbol(_LIFETIME), policy), (Symbol(_MODES), Array(0xA3, modes))])


def wrong_terminus(address: Any, dynamic: Any, properties: Any) -> str:
    """What is wrong with a terminus for a dynamic node; empty: nothing."""
    if dynamic is not True:
        return ""  # properties without dynamic are ignored: they create no node (M-5)
    if address is not None:
        return "an address beside dynamic"
    pairs = {str(key): value for key, value in properties.pairs} if properties is not None else {}
    if pairs.get(_LIFETIME) is not None and _lifetime(pairs[_LIFETIME]) is None:
        return "a lifetime-policy that is none of AMQP's"
    modes = pairs.get(_MODES)
    named = modes.items if isinstance(modes, Array) else [] if modes is None else [modes]
    if not all(isinstance(mode, Symbol) for mode in named):
        return "supported-dist-modes that are no symbols"
    return ""


def lifetime(properties: Any) -> str:
    """The policy that was asked for; `close` where none was."""
    pairs = {str(key): value for key, value in properties.pairs} if isinstance(properties, AmqpMap) else {}
    return _lifetime(pairs.get(_LIFETIME)) or "close"


def _lifetime(policy: Any) -> str | None:
    if not isinstance(policy, Described) or not isinstance(policy.value, list):
        return None
    descriptor = policy.descriptor
    return LIFETIMES.get(descriptor) if isinstance(descriptor, int) else _SYMBOLS.get(str(descriptor))
