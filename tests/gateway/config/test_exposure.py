"""In which ways a gateway is open to other machines: said at the start and in /health, and not of loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config.exposure import exposures, reaches_beyond_loopback
from gateway.config.settings import load_settings
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import embedded_realm, make_gateway
from tests.kit.wire.logins import write_users

NAMED = {"sasl": ["SCRAM-SHA-256"], "users": "users.yaml"}
IN_THE_CLEAR = {**NAMED, "sasl": ["SCRAM-SHA-256", "PLAIN"], "plain_without_tls": True}


def warnings_of(tmp_path: Path, has_grants: bool = True, **settings: Any) -> list[str]:
    write_users(tmp_path / "users.yaml", ann=[])
    (tmp_path / "gateway.yaml").write_text(yaml.safe_dump({"realm": {"kind": "embedded"}, **settings}))
    return [*exposures(load_settings(tmp_path / "gateway.yaml"), has_grants)]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "[::1]", "localhost"])
def test_loopback_is_not_open(tmp_path: Path, host: str) -> None:
    admin = {"listen": "http://127.0.0.1:9464"}
    assert warnings_of(tmp_path, False, listen=[f"amqp://{host}:5672"], admin=admin) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.7", "[2001:db8::7]", "no-such-host.invalid"])
def test_each_way_is_reported(tmp_path: Path, host: str) -> None:
    url = f"amqp://{host}:5672"
    [anonymous] = warnings_of(tmp_path, listen=[url])
    assert anonymous.startswith(f"{url}: a peer needs no user name and no password (sasl offers ANONYMOUS): write ")
    [bare] = warnings_of(tmp_path, listen=[url], security={**NAMED, "bare_amqp": True})
    assert "bare_amqp is true" in bare
    [clear] = warnings_of(tmp_path, listen=[url], security=IN_THE_CLEAR)
    assert clear.startswith(f"{url}: PLAIN sends passwords")
    [everything] = warnings_of(tmp_path, False, listen=[url], security=NAMED)
    assert "the realm has no grants" in everything
    [admin] = warnings_of(tmp_path, admin={"listen": f"http://{host}:9464"})
    assert admin.startswith(f"http://{host}:9464: anyone who can connect can read health and metrics")
    assert warnings_of(tmp_path, admin={"listen": f"http://{host}:9464", "guarded": True}) == []
    assert warnings_of(tmp_path, listen=[url], security=NAMED) == []
    assert (
        len(warnings_of(tmp_path, False, listen=[url, "amqp://127.0.0.1:5673"], admin={"listen": f"http://{host}:1"}))
        == 3
    )


def test_it_is_asked_once_what_a_name_means() -> None:
    assert reaches_beyond_loopback("localhost") is False


def test_it_is_reported_at_the_start_and_in_health_until_it_is_mended(tmp_path: Path) -> None:
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), admin={"listen": "http://0.0.0.0:0"})
    gateway.host = "0.0.0.0"
    gateway.start()
    try:
        lines = [line for line in gateway.log_path.read_text().splitlines() if "open to the world: " in line]
        assert len(lines) == 3
        watch = Watch.of(gateway)
        watch.url = watch.url.replace("0.0.0.0", "127.0.0.1")
        shown = watch.health()
        assert (shown["status"], shown["state"], shown["problems"]) == (200, "ready", [])
        warnings = [words for words in shown["warnings"] if words.startswith("open to the world: ")]
        assert [words.partition(": ")[2] in line for words, line in zip(warnings, lines, strict=True)] == [True] * 3
        gateway.command("acl", "grant", "user:ann", "manage", "--realm")
        watch.until(lambda: len(watch.health()["warnings"]) == 2)
        assert not any("no grants" in words for words in watch.health()["warnings"])
    finally:
        gateway.stop()
