"""Selectors: which messages a consumer wants, in the words of JMS, asked of the bytes of AMQP messages.

`selector(text)` compiles; `Selector.select(values)` says of a column of messages which ones match: those of which it is
true, not those of which nothing is known. What is no AMQP message matches nothing.

Errors: `grammar.SelectorError`, with its place in the text. Limits: `grammar.TERMS_DEEP` terms inside each other. The
caller bounds the length of the text.
Source: JMS 2.0 section 3.8; semantics S-R1d, J-3, 3.7.
"""

from __future__ import annotations

import functools

from transformers.codec import DecodeError
from transformers.selector.fields import Message
from transformers.selector.grammar import read_selector


class Selector:
    """A compiled selector."""

    __slots__ = ("_read", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._read = read_selector(text)

    def select(self, values: list[bytes]) -> list[bool]:
        """Which of these messages match."""
        read, message = self._read, Message()
        matches = []
        for value in values:
            message.load(value)
            try:
                matches.append(read(message) is True)
            except DecodeError:
                matches.append(False)
        return matches


@functools.lru_cache(maxsize=256)  # the consumers of an application share few selectors
def selector(text: str) -> Selector:
    """Compile. SelectorError: it is none."""
    return Selector(text)
