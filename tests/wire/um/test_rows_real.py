"""The rows of the documented delivery-state tables, in every profile, on the real realms: the scenarios of `test_rows`,
and causes that are brought about. What cannot be is listed, with the reason that `docs/conformance/um.md` gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from mappings import load_tables
from mappings.language.vocabulary import PROFILES
from native_backend.log.kafka import settings
from tests.kit.realm.worlds import KafkaWorld, SqliteWorld
from tests.kit.tables.um_rows import SEED, expected
from tests.wire.um.conformance import REALMS, line_of, scripted_only
from tests.wire.um.recorded_gateway import RecordedGateway, Refuse, RefuseKafka, ScriptedOnly


def _later(config: Any, *arguments: Any) -> dict[str, Any]:
    """Single records leave 20 ms after their date: a broker that takes none older than 0 ms refuses each of them."""
    return {**config(*arguments), "linger.ms": 20}


@pytest.fixture(scope="module", params=[f"{kind} {profile}" for kind in REALMS for profile in PROFILES])
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedGateway]:
    """A gateway of that realm and profile, for every scenario of them."""
    kind, profile = request.param.split()
    world: SqliteWorld | KafkaWorld
    if kind == "embedded":
        world, refuse = SqliteWorld(tmp_path_factory.mktemp("um")), Refuse()
    else:
        bootstrap = request.getfixturevalue("kafka_bootstrap")
        world, refuse = KafkaWorld(bootstrap), RefuseKafka(bootstrap)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "single", partial(_later, settings.single))
        with RecordedGateway(load_tables(profile=profile), world, refuse) as made:
            yield made
    world.close()


@pytest.mark.parametrize("row", SEED)
def test_um_rows_on_a_real_realm(gateway: RecordedGateway, request: pytest.FixtureRequest, row: str) -> None:
    kind, profile = request.node.callspec.params["gateway"].split()
    reasons = []
    for scenario in line_of(row, profile).scenarios:
        try:
            scenario(gateway.fresh(), expected(row, profile))
        except ScriptedOnly as reason:
            reasons.append(str(reason))
        finally:
            gateway.answers.clear()
    assert tuple(reasons) == scripted_only(row, profile, kind)
