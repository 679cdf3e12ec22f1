"""`realmgate mappings explain --record`, beside a gateway."""

from __future__ import annotations

import subprocess

from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import REALMGATE, GatewayProcess


def replay(gateway: GatewayProcess, record: str) -> tuple[int, str]:
    command = [str(REALMGATE), "mappings", "explain", "--record", record, "--config", str(gateway.config_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    return done.returncode, done.stdout + done.stderr
