"""`realmgate problems`: nothing of a healthy gateway; else what is wrong, where, who, by which rule, what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.kit.patience import until
from tests.kit.processes.admin_pages import Watch
from tests.kit.processes.broker import free_port
from tests.kit.processes.gateway import StartGateway, realmgate
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

ADMIN = {"listen": "http://127.0.0.1:0"}


def test_problems_are_reported_with_an_exit_code(new_gateway: StartGateway, tmp_path: Path) -> None:
    gateway = new_gateway("embedded", admin=ADMIN, nodes={})
    url = Watch.of(gateway).url
    here = ("problems", "--gateway", url)
    assert realmgate(*here)[:2] == (0, f"Nothing is wrong. {url.removeprefix('http://')}: ready\n")
    gateway.command("node", "create", "orders")
    with Peer(gateway.port, container="shop") as peer:
        peer.send(frames.attach_sender("oders", 7, "to-oders"))
        assert peer.refused() == "amqp:not-found"
    shown: list[str] = []

    def is_said() -> bool:
        shown[:] = realmgate(*here)[1].splitlines()
        return shown[0].startswith("1 problem is open.")

    until(is_said, "the problem")
    assert shown[1].split(maxsplit=1) == ["fatal", "oders does not exist. The nearest name is orders."]
    assert shown[2].strip() == "node oders; shop, user anonymous, 127.0.0.1; rule attach.refuse-an-unknown-node"
    assert shown[3].strip().startswith("once, since 20")
    assert shown[4].strip().startswith("what to do: there is no node oders; did you mean orders?")
    assert len(shown) == 5 and realmgate(*here)[0] == 1
    silent = f"http://127.0.0.1:{free_port()}"
    code, words, _ = realmgate(*here, "--gateway", silent)
    assert code == 1 and "2 problems are open." in words, words
    assert f"{silent.removeprefix('http://')} does not answer." in words
    assert "at 127.0.0.1:" in words, "each says at which gateway"
    code, words, _ = realmgate("problems", "--gateway", silent)
    assert code == 2 and "Connection refused" in words
    manifest = {"verdict": "not clean", "sentence": "4 lost writes.", "classes": [{"class": "P1", "count": 4}]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    report: dict[str, Any] = json.loads(realmgate(*here, "--json", "--reports", str(tmp_path))[1])
    assert [row["kind"] for row in report["problems"]] == ["reconciliation", "node-unknown"], "what may lose is first"
    assert report["sentence"] == "2 problems are open; 1 may lose messages."
    assert report["gateways"][0]["state"] == "ready"
