"""Users as a foreign client sees them: Qpid JMS logs in by SCRAM, whose server it verifies, and by PLAIN."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.auth.passwords import hash_password
from gateway.auth.users import SCRAM
from tests.interop.clients import jms
from tests.kit.processes.gateway import StartGateway

PASSWORD = "pass,word=1"  # Qpid JMS takes ASCII only
WAYS = (*SCRAM, "PLAIN")


def url(address: str, mechanism: str, password: str) -> str:
    login = f"jms.username=alice&jms.password={password}&amqp.saslMechanisms={mechanism}"
    return f"amqp://{address}?{login}"


def test_qpid_jms_logs_in(new_gateway: StartGateway, tmp_path: Path) -> None:
    users = tmp_path / "users.yaml"
    entries = "".join(f'\n      - "{hash_password(PASSWORD, name, 4096)}"' for name in SCRAM)
    users.write_text(f"users:\n  alice:\n    scram:{entries}\n")
    security = {"sasl": list(WAYS), "users": str(users), "plain_without_tls": True}
    served = new_gateway("embedded", security=security)
    quoted = "pass%2Cword%3D1"
    for at, mechanism in enumerate(WAYS):
        assert jms("send", url(served.address, mechanism, quoted), "orders", str(at * 10), "10") == "accepted 10"
    with pytest.raises(RuntimeError, match=r"(?i)authenticat|security"):
        jms("send", url(served.address, "SCRAM-SHA-256", "wrong"), "orders", "0", "1")
