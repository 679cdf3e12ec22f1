"""What parts in C call has to be of a version that they were written for: else nothing is served."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import embedded_realm, kafka_realm

NEW_LIBRDKAFKA = "import confluent_kafka; confluent_kafka.libversion = lambda: ('3.1.2', 0x030102FF)"
OLD_LIBRDKAFKA = "import confluent_kafka; confluent_kafka.libversion = lambda: ('2.15.9', 0x020F09FF)"
NEW_PROTON = "import cproton; cproton.PN_VERSION_MINOR, cproton.PN_VERSION_POINT = 41, 3"
RUN = "import sys; from gateway.cli.main import run; sys.exit(run(sys.argv[1:]))"
KAFKA = kafka_realm("127.0.0.1:1", "um")
LIBRDKAFKA = "is loaded, and this release is built for 2.16.0 and later below 3.0.0: install confluent-kafka==2.16.1"
PROTON = "is loaded, and this release is built for 0.40.0 and later below 0.41.0: install python-qpid-proton==0.40.0"


@pytest.mark.parametrize(
    ("fake", "realm", "words"),
    [
        (NEW_LIBRDKAFKA, KAFKA, f"librdkafka 3.1.2 {LIBRDKAFKA}"),
        (OLD_LIBRDKAFKA, KAFKA, f"librdkafka 2.15.9 {LIBRDKAFKA}"),
        (NEW_PROTON, None, f"proton 0.41.3 {PROTON}"),
    ],
)
def test_another_version_is_refused_before_anything_is_served(
    tmp_path: Path, fake: str, realm: dict[str, Any] | None, words: str
) -> None:
    configuration = tmp_path / "gateway.yaml"
    configuration.write_text(
        yaml.safe_dump({"realm": realm or embedded_realm(tmp_path), "listen": ["amqp://127.0.0.1:0"]})
    )
    command = [sys.executable, "-c", f"{fake}; {RUN}", "serve", "--config", str(configuration)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1] == f"realmgate: {words}"
    assert "Traceback" not in done.stderr and "listening" not in done.stderr
    assert not (tmp_path / "realm").exists()
