"""The settle modes that an ATTACH asks for. What is no ubyte, or one that names no mode, asks for the default, as
proton reads it. Source: AMQP 1.0 part 2, 2.7.3, 2.8.2, 2.8.3. May import: `gateway.frames`, `transformers.amqp_types`.
"""

from __future__ import annotations

from typing import Final

from gateway.frames import Frame
from transformers.amqp_types import UByte

_SENDER_AT: Final = 3
_RECEIVER_AT: Final = 4
_SENDER: Final = ("unsettled", "settled", "mixed")
_RECEIVER: Final = ("first", "second")


def sender_settle_mode(attach: Frame) -> str:
    return _asked(attach, _SENDER_AT, _SENDER, "mixed")


def receiver_settle_mode(attach: Frame) -> str:
    return _asked(attach, _RECEIVER_AT, _RECEIVER, "first")


def _asked(attach: Frame, at: int, modes: tuple[str, ...], default: str) -> str:
    mode = attach.field(at)  # 0.0 equals 0, and true 1
    return modes[mode] if type(mode) is UByte and mode < len(modes) else default
