"""Passwords and messages that every user of the machine may read: said at the start, in /health and by doctor."""

from __future__ import annotations

from pathlib import Path

from native_backend.log.open import EMBEDDED_FILE, open_embedded
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.gateway import embedded_realm, make_gateway
from tests.kit.wire.logins import write_users

WORDS = "every user of this machine may read it"


def test_it_is_reported_at_the_start_and_in_health_until_it_is_mended(tmp_path: Path) -> None:
    users, realm = tmp_path / "users.yaml", tmp_path / "realm" / EMBEDDED_FILE
    write_users(users, ann=[])
    open_embedded(realm.parent).close()
    users.chmod(0o644)
    realm.chmod(0o644)
    security = {"sasl": ["SCRAM-SHA-256"], "users": str(users)}
    admin = {"listen": "http://127.0.0.1:0"}
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path), admin=admin, security=security)
    gateway.start()
    try:
        warnings = [f"{file}: {WORDS}: chmod o-r {file}" for file in (users, realm)]
        lines = gateway.log_path.read_text().splitlines()
        assert [words for words in warnings if any(words in line for line in lines)] == warnings
        watch = Watch.of(gateway)
        assert _shown(watch) == warnings
        users.chmod(0o640)
        assert _shown(watch) == warnings[1:]
        realm.chmod(0o600)
        assert _shown(watch) == []
    finally:
        gateway.stop()


def _shown(watch: Watch) -> list[str]:
    health = watch.health()
    assert health["state"] == "ready"
    return [words for words in health["warnings"] if WORDS in words]
