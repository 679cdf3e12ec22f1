"""A log whose control calls are answered by another object: what that one does not have goes to the log."""

from __future__ import annotations

from typing import Any

from native_backend.log.port import Control, Log
from tests.kit.realm.inside import context_of
from tests.kit.realm.realm_process import RealmProcess


def answer_control(process: RealmProcess, control: OtherControl) -> None:
    """From now on the realm's control calls are answered by that one."""
    object.__setattr__(context_of(process.realm), "log", ControlledLog(process.log, control))


class OtherControl:
    """Control calls, of which a subclass answers some."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def __getattr__(self, name: str) -> object:
        return getattr(self._control, name)


class ControlledLog:
    def __init__(self, log: Log, control: OtherControl) -> None:
        self._log, self.control = log, control

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)
