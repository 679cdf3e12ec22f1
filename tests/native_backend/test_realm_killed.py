"""kill -9 of a whole process on the embedded realm, at any moment: nothing answered is lost or repeated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from native_backend.log.open import open_embedded
from native_backend.nodes.group_offset import low_of
from tests.kit.patience import HANG_S
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SqliteWorld

# Publishes and settles without end; says on stdout what was answered, after it was answered.
CHILD = """
import sys
from pathlib import Path
from native_backend.nodes.answers import Published, Settled
from tests.kit.realm.realm_process import RealmProcess
from tests.kit.realm.worlds import SqliteWorld

realm = RealmProcess(SqliteWorld(Path(sys.argv[1])), "k").open()
node = realm.create("orders")
consumer = realm.consumer(node)
waiting = {}
number = 0
while True:
    for _ in range(2):
        realm.realm.publish(node, [b"k"] * 100, [b"%d" % (number + at) for at in range(100)], "publish")
        number += 100
    eids = consumer.take(400)
    if eids:
        settled = eids[1::2] + eids[::4]
        waiting[consumer.start("acknowledge", settled)] = settled
    for answer in realm.realm.poll():
        if isinstance(answer, Published):
            assert answer.answer == "stored", answer
            print("stored", *answer.eids, flush=True)
        elif isinstance(answer, Settled):
            assert answer.answer == "done", answer
            print("done", *waiting.pop(answer.owner), flush=True)
"""


@pytest.mark.parametrize("after_s", [0.15, 0.4])
def test_what_was_answered_before_a_kill_is_true_after_it(tmp_path: Path, after_s: float) -> None:
    path = tmp_path / "told"
    with path.open("wb") as out:
        child = subprocess.Popen([sys.executable, "-c", CHILD, str(tmp_path / "realm")], stdout=out)
        deadline = time.monotonic() + HANG_S
        while b"done" not in path.read_bytes():
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(after_s)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    stored: set[int] = set()
    done: set[int] = set()
    for line in path.read_text().rpartition("\n")[0].splitlines():  # the last line may be cut
        what, *eids = line.split()
        (stored if what == "stored" else done).update(map(int, eids))
    assert len(stored) >= 500
    assert done

    later = RealmProcess(SqliteWorld(tmp_path / "realm"), "k").open()
    node = later.find("orders")
    assert node is not None
    consumer = later.consumer(node)
    back = consumer.drain()
    assert len(back) == len(set(back))
    assert not done & set(back), "acknowledged, answered, and given again"
    state = later.state(node)
    missing = stored - set(back)
    assert all(eid < state.low or eid in state.acked for eid in missing), "neither given nor terminal"
    assert any(consumer.again.values())
    assert not any(consumer.failed.values())
    consumer.acknowledge(back)
    assert not state.acked
    later.close()
    log = open_embedded(tmp_path / "realm")
    position = log.control.projected("k.queue.orders")[node.topic, 0]
    assert low_of(position) == state.low
    assert position[0] == log.control.bounds(node.topic, 0)[1], "no message is left"
    log.close()
