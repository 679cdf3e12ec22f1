"""The settle modes in an ATTACH. A value that is no ubyte, or that names no mode, means the default, as proton reads
it. Source: AMQP 1.0 part 2, 2.7.3, 2.8.2, 2.8.3.
"""

from __future__ import annotations

from typing import Final

from gateway.frames.frames import Frame
from transformers.codec import UByte

_SENDER_AT: Final = 3
_RECEIVER_AT: Final = 4
SENDER: Final = ("unsettled", "settled", "mixed")
RECEIVER: Final = ("first", "second")


def sender_settle_mode(attach: Frame) -> str:
    return _asked(attach, _SENDER_AT, SENDER, "mixed")


def receiver_settle_mode(attach: Frame) -> str:
    return _asked(attach, _RECEIVER_AT, RECEIVER, "first")


def _asked(attach: Frame, at: int, modes: tuple[str, ...], default: str) -> str:
    mode = attach.field(at)  # 0.0 equals 0, and true 1
    return modes[mode] if type(mode) is UByte and mode < len(modes) else default
