"""The size of an answer to an ATTACH: the frames of its peer may have no room for it.

Source: AMQP 1.0 part 2, 2.7.1; ADR 0081.
"""

from __future__ import annotations

from gateway.amqp.link_ends import Link
from gateway.links.peer import Peer


def see_that_it_fitted(peer: Peer, link: Link) -> None:
    """An answer that does not fit the peer's frames ends the link, or its session where not even the link's name
    fits."""
    extent = link.written.extent if link.written is not None else "whole"
    if extent == "none":
        peer.fault("answer-too-large", "the link's name", channel=link.attach.channel)
    elif extent == "bare" and link.alive:
        peer.fault("answer-too-large", "the answer to the attach", link)
