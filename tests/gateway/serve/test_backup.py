"""The commands of docs/how-to/back-up-and-restore.md on an embedded realm: a copy is taken while the gateway serves,
and put in place of the realm."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import embedded_realm, start_gateway
from tests.kit.wire import frames
from tests.kit.wire.peer import Peer

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "back-up-and-restore.md"
ACCEPTED = frames.state("accepted")


def command(realm: Path, backup: Path) -> list[str]:
    """That of the page, for these paths."""
    match = re.search(r"^sqlite3 (\S+) \"\.backup '(\S+)'\"$", PAGE.read_text(), re.MULTILINE)
    assert match is not None, "the page names the command"
    assert match[1].endswith("/realm.sqlite") and match[2].endswith("/realm.sqlite")
    return ["sqlite3", str(realm), f".backup '{backup}'"]


def test_a_copy_taken_while_it_serves_is_the_realm_of_that_moment(tmp_path: Path) -> None:
    realm, backup = tmp_path / "realm" / "realm.sqlite", tmp_path / "backup" / "realm.sqlite"
    backup.parent.mkdir()
    gateway = start_gateway(tmp_path, embedded_realm(tmp_path))
    try:
        with Peer(gateway.port) as peer:
            peer.stored("orders", *(frames.message(b"%d" % number) for number in range(10)))
            peer.consumer("orders", credit=4, handle=2)
            came = peer.receive(4, handle=2)
            peer.settle([seen.field(1) for seen in came[:2]], ACCEPTED, settled=False)
            assert set(peer.outcomes(2).values()) == {"accepted"}
            done = subprocess.run(command(realm, backup), capture_output=True, text=True, timeout=HANG_S, check=False)
            assert done.returncode == 0, done.stderr
            peer.stored("orders", frames.message(b"later"))
        gateway.kill()
        shutil.rmtree(realm.parent)
        realm.parent.mkdir()
        shutil.copy(backup, realm)
        gateway.start()
        with Peer(gateway.port) as peer:
            peer.consumer("orders", credit=20)
            assert [seen.payload[-1:] for seen in peer.receive(8)] == [b"%d" % number for number in range(2, 10)]
            peer.credit(5, drain=True)
            assert peer.drained(), "what was accepted after the copy is gone: no realm can know of it"
    finally:
        assert gateway.stop() == 0
