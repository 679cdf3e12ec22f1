"""`realmgate mappings explain --record`, beside a gateway."""

from __future__ import annotations

from tests.kit.processes.gateway import GatewayProcess, realmgate


def replay(gateway: GatewayProcess, record: str) -> tuple[int, str]:
    code, *texts = realmgate("mappings", "explain", "--record", record, "--config", str(gateway.config_path))
    return code, "".join(texts)
