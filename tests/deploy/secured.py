"""A real Kafka node that lets no one in without proof, started by `deploy/kafka/secured.sh`, and rights on it.

kafka = start_secured(tmp_path / "kafka")
kafka.grant(RIGHTS, "um.")
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka.admin

from tests.kit.patience import HANG_S
from tests.kit.processes.broker import SCRIPTS, START_TIMEOUT_S

Right = tuple[str, str]  # resource, operation
_ADMIN: Any = confluent_kafka.admin


@dataclass(slots=True)
class Secured:
    """`sasl` and `mtls` are addresses; `tls` is where keys and passwords lie."""

    directory: Path
    sasl: str
    mtls: str

    @property
    def tls(self) -> Path:
        return self.directory / "tls"

    @property
    def password(self) -> str:
        return (self.tls / "gateway.password").read_text().strip()

    def grant(self, rights: Sequence[Right], prefix: str) -> None:
        """To User:gateway, on everything whose name begins so."""
        self._create([_binding(right, prefix, "PREFIXED", "ALLOW") for right in rights])

    def allow(self, right: Right, name: str, user: str = "gateway") -> None:
        self._create([_binding(right, name, "LITERAL", "ALLOW", user)])

    def deny(self, right: Right, name: str, user: str = "gateway") -> None:
        self._create([_binding(right, name, "LITERAL", "DENY", user)])

    def stop(self) -> None:
        environment = {**os.environ, "KAFKA_DIR": str(self.directory)}
        subprocess.run([SCRIPTS / "stop.sh"], env=environment, check=True, timeout=HANG_S)

    def _create(self, bindings: list[Any]) -> None:
        admin = _ADMIN.AdminClient({"bootstrap.servers": self.mtls, **certificate(self.tls, "admin")})
        for done in admin.create_acls(bindings).values():
            done.result(60)


def start_secured(directory: Path) -> Secured:
    environment = {**os.environ, "KAFKA_DIR": str(directory)}
    environment.pop("KAFKA_PORT", None)
    done = subprocess.run(
        [SCRIPTS / "secured.sh"], env=environment, capture_output=True, text=True, timeout=START_TIMEOUT_S, check=False
    )
    if done.returncode != 0:
        Secured(directory, "", "").stop()
        raise RuntimeError(f"secured.sh failed ({done.returncode}):\n{done.stderr}")
    return Secured(directory, *done.stdout.split())


def certificate(tls: Path, name: str) -> dict[str, str]:
    """Settings of librdkafka's to come with a certificate."""
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": str(tls / "ca.pem"),
        "ssl.certificate.location": str(tls / f"{name}.pem"),
        "ssl.key.location": str(tls / f"{name}.key"),
    }


def _binding(right: Right, name: str, pattern: str, permission: str, user: str = "gateway") -> Any:
    resource, operation = right
    return _ADMIN.AclBinding(
        _ADMIN.ResourceType[resource],
        name,
        _ADMIN.ResourcePatternType[pattern],
        f"User:{user}",
        "*",
        _ADMIN.AclOperation[operation],
        _ADMIN.AclPermissionType[permission],
    )
