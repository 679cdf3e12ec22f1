"""What an ATTACH says of a link, whatever node it names: its settle modes, and what it may not say (an invalid field,
outcomes that are none, a delivery mode that is forced on us).

A settle mode that is no ubyte, or that names no mode, means the default, as proton reads it.
Source: AMQP 1.0 part 2, 2.7.3, 2.8.2, 2.8.3; semantics 2.I-1, 2.I-4, 2.I-6, 2.R-1, 2.R-7.
"""

from __future__ import annotations

from typing import Final

from gateway.frames.frames import Frame
from gateway.terminus.termini import agreed_outcomes, read_default_outcome
from transformers.codec import AmqpMap, UByte

_SENDER_AT: Final = 3
_RECEIVER_AT: Final = 4
SENDER: Final = ("unsettled", "settled", "mixed")
RECEIVER: Final = ("first", "second")
_OUTCOMES: Final = frozenset({"accepted", "rejected", "released", "modified"})
_ROLE, _PROPERTIES = 2, 13
_FORCED: Final = "delivery-mode"


def sender_settle_mode(attach: Frame) -> str:
    return _asked(attach, _SENDER_AT, SENDER, "mixed")


def receiver_settle_mode(attach: Frame) -> str:
    return _asked(attach, _RECEIVER_AT, RECEIVER, "first")


def _asked(attach: Frame, at: int, modes: tuple[str, ...], default: str) -> str:
    mode = attach.field(at)  # 0.0 equals 0, and true 1
    return modes[mode] if type(mode) is UByte and mode < len(modes) else default


def attach_fault(attach: Frame) -> tuple[str, str] | None:
    """A value of the axis of the table `fault`, and words for it; None: nothing is wrong."""
    if attach.invalid:
        return "invalid-field-of-link", attach.invalid
    consuming = attach.field(_ROLE) is True
    if consuming:
        unknown = sorted((agreed_outcomes(attach) or frozenset()) - _OUTCOMES)
        if unknown:
            return "outcome-unknown", f"{unknown[0][:60]!r} is no outcome"
        if read_default_outcome(attach) == "unknown":
            return "outcome-unknown", "the default-outcome is no outcome"
    properties = attach.field(_PROPERTIES)
    forced = properties.get(_FORCED) if isinstance(properties, AmqpMap) else None
    if forced is not None and not _is_kept(str(forced), consuming, sender_settle_mode(attach) == "settled"):
        return "delivery-mode-forced", f"{str(forced)[:60]!r} is not what this link does"
    return None


def _is_kept(mode: str, consuming: bool, settled: bool) -> bool:
    """Nothing is settled before it is stored, or before it was taken; unless the link settles all when it is sent."""
    return mode == ("at-most-once" if settled and consuming else "at-least-once") and (consuming or not settled)
