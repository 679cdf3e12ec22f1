"""The way back: the AMQP message for an event whose value is not one, and the form of a dead letter.

An event with headers is given to the transformer that made it, by the name in its identity; what no transformer can
restore is given as a native record would be. Both are for the realm: `Frame` and `Enclose`.
Errors: none. May import: `native_backend.foreign`, `headers`, `letter`, `transformers`, `gateway`.
"""

from __future__ import annotations

import logging

from gateway.conversion import checked, own_key
from gateway.letters import annotated_letter
from native_backend.foreign import is_message
from native_backend.headers import HeadedKey
from native_backend.letter import Letter, original_key
from transformers import EventTransformer, NativeEvent, TransformerError, event_transformer
from transformers.installed import COMPLETE
from transformers.native import message_of
from transformers.sections import section_offsets

log = logging.getLogger("realmgate.transformer")


class Restoring:
    """Of one realm. Failures are said once for each transformer: whose bytes they are may differ with every event."""

    def __init__(self) -> None:
        self._transformers: dict[str, EventTransformer | None] = {}
        self._told: set[str] = set()

    def message(self, key: bytes | None, value: bytes) -> bytes:
        """What consumers are given of an event that is no message as it stands."""
        if type(key) is not HeadedKey:
            return message_of(value)
        name = _maker(key)
        transformer = self._transformer(name) if name else None
        if transformer is not None:
            try:
                message = transformer.message(NativeEvent(key.record_key, key.headers[1:], value))
                if name != COMPLETE:
                    section_offsets(message)
                return message
            except Exception as error:  # a user's class, or headers that somebody else has written
                self._tell(name, error)
        return message_of(value, key.headers)

    def enclose(self, key: bytes, value: bytes, letter: Letter) -> tuple[bytes, bytes]:
        """Key and value of a dead letter, in the form of the event."""
        if is_message(key):
            return key, annotated_letter(value, letter)
        message = annotated_letter(self.message(key, value), letter)
        name = _maker(key)
        transformer = self._transformer(name) if name else None
        if transformer is not None:
            try:
                event = transformer.event(message)
                if event is not None:
                    event = checked(event)
                    return HeadedKey.of_event(bytes(key), own_key(event), event.headers), event.value
            except Exception as error:  # a user's class
                self._tell(name, error)
        return bytes(key), message

    def _transformer(self, name: str) -> EventTransformer | None:
        if name not in self._transformers:
            try:
                self._transformers[name] = event_transformer(name)
            except TransformerError as error:
                log.error("events of transformer %r are given as native ones: %s", name, error)
                self._transformers[name] = None
        return self._transformers[name]

    def _tell(self, name: str, error: Exception) -> None:
        if name not in self._told:
            self._told.add(name)
            told = f"{type(error).__name__}: {error}"[:300]
            log.error("transformer %r could not restore an event, which is given as a native one: %s", name, told)


def _maker(key: bytes) -> str:
    """The name of the transformer in an identity with headers; empty: nobody's."""
    identity = original_key(key)
    return identity.split(b";", 2)[1].decode("ascii", "replace") if identity.startswith(b"3;") else ""
