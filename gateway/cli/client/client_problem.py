"""Why a client has no connection or no link."""

from __future__ import annotations


class ClientProblem(Exception):
    """The connection or the link is not to be had, in words for an operator. `refused`: the peer answered, and refused
    the link."""

    def __init__(self, text: str, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused
