"""/livez and /readyz: green where all is well, and red where it is not."""

from __future__ import annotations

import json
import os
import signal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.admin.probes import live, waiting_live, waiting_ready
from gateway.config.limits import TURN_AGE_MAX_S
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import StartGateway

ADMIN = {"listen": "http://127.0.0.1:0"}


@pytest.mark.parametrize(("age_s", "status"), [(0.0, 200), (TURN_AGE_MAX_S, 200), (TURN_AGE_MAX_S + 0.1, 503)])
def test_a_gateway_whose_turns_have_ended_is_not_alive(age_s: float, status: int) -> None:
    clock = SimpleNamespace(monotonic_s=lambda: 100.0 + age_s)
    gateway = SimpleNamespace(clock=clock, turned_s=100.0, realm=SimpleNamespace(run="run"))
    assert live(cast(Any, SimpleNamespace(gateway=gateway))).status == status


def test_a_gateway_that_opens_its_realm_lives_and_is_not_ready() -> None:
    assert waiting_live("opening", "run").status == 200
    assert waiting_ready("opening", "the log does not answer", "run").status == 503
    assert waiting_ready("standby", "another gateway owns the realm", "run").status == 200


def test_a_serving_gateway_lives_and_is_ready_and_a_frozen_one_answers_nothing(new_gateway: StartGateway) -> None:
    process = new_gateway("embedded", admin=ADMIN)
    watch = Watch.of(process)
    for path in ("/livez", "/readyz"):
        status, headers, body = watch.ask(path)
        assert (status, headers["Content-Type"]) == (200, "application/json")
        assert json.loads(body)["run"] == watch.health()["run"]
    os.kill(process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(OSError, match="timed out"):
            watch.ask("/livez", timeout_s=1)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    watch.until(lambda: watch.ask("/livez")[0] == 200)
