"""What an ATTACH asks for, where it says it in another type or asks for what there is not (AMQP 1.0 part 2, 2.7.3)."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.frames.frames import ATTACH, Frame
from gateway.terminus.attach import receiver_settle_mode, sender_settle_mode
from transformers.codec import UByte, UInt


@pytest.mark.parametrize(
    ("mode", "sender", "receiver"),
    [
        (None, "mixed", "first"),
        (UByte(0), "unsettled", "first"),
        (UByte(1), "settled", "second"),
        (UByte(2), "mixed", "first"),
        (UByte(3), "mixed", "first"),
        (0.0, "mixed", "first"),
        (1.0, "mixed", "first"),
        (True, "mixed", "first"),
        (UInt(1), "mixed", "first"),
        ([], "mixed", "first"),
    ],
)
def test_modes(mode: Any, sender: str, receiver: str) -> None:
    attach = Frame(0, ATTACH, ("name", UInt(0), False, mode, mode))
    assert (sender_settle_mode(attach), receiver_settle_mode(attach)) == (sender, receiver)
