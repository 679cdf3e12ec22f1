"""A realm whose log refuses evidence."""

from __future__ import annotations

from native_backend.limits import RealmLimits
from native_backend.log.simulated.driver import SimulatedLog
from native_backend.log.simulated.faults import Faults
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SimulatedWorld

FULL = Faults(refuse=1.0, refusals=("unavailable",))


def opened(simulated: SimulatedWorld, limits: RealmLimits) -> tuple[RealmProcess, SimulatedLog]:
    realm = RealmProcess(simulated, "u", limits=limits).open()
    assert isinstance(realm.log, SimulatedLog)
    return realm, realm.log


def append(realm: RealmProcess, *numbers: int) -> None:
    for number in numbers:
        realm.realm.append_evidence("outcomes", b"run", b"%d" % number)
