"""Checkers that no planted bug can reach, because proton stands between: they are shown the wrong bytes themselves."""

from __future__ import annotations

import pytest

from tests.kit.wire import frames
from tests.simulation.checkers import NeverMoreThanCreditSent
from tests.simulation.observation.checker import Violation
from tests.simulation.observation.observers import Observers
from tests.simulation.observation.witness import Witness
from tests.simulation.shape import PLAIN
from tests.simulation.world import World
from transformers.codec import UInt


def _transfer(delivery: int) -> bytes:
    fields = [UInt(0), UInt(delivery), b"7:%d" % delivery, UInt(0), False, False]
    return frames.frame(frames.TRANSFER, fields, frames.message(b"<m%d>" % delivery))


def test_an_event_beyond_the_credit_is_noticed() -> None:
    world = World(0, PLAIN, checkers=())
    witness = Witness(Observers([NeverMoreThanCreditSent(world)], world.remember), "run")
    witness.inbound(frames.AMQP_HEADER + frames.open_() + frames.begin())
    witness.inbound(frames.attach_receiver("orders", handle=1) + frames.flow(1, 2))
    witness.outbound(frames.AMQP_HEADER + frames.open_("gateway"))
    begin = [UInt(0), UInt(0), UInt(2048), UInt(2048)]
    witness.outbound(frames.frame(frames.BEGIN, begin) + frames.attach_sender("x", handle=0, name="sub"))
    witness.outbound(_transfer(0) + _transfer(1))
    with pytest.raises(Violation, match="3 sent, 2 allowed"):
        witness.outbound(_transfer(2))
