"""Another package named `transformers` in the same environment is named, with what to do, before anything starts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.kit.processes.gateway import REALMGATE, embedded_realm, make_gateway


def other_package(directory: Path, with_code: bool) -> dict[str, str]:
    """The environment in which Python finds it before ours. Its code would take long, and fails: it is never run."""
    metadata = directory / "transformers-4.57.1.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: transformers\nVersion: 4.57.1\n")
    if with_code:
        (directory / "transformers").mkdir()
        (directory / "transformers" / "__init__.py").write_text("raise RuntimeError('no torch')\n")
    return {"PYTHONPATH": str(directory)}


def test_one_in_the_place_of_ours_stops_every_command(tmp_path: Path) -> None:
    environment = {**os.environ, **other_package(tmp_path, with_code=True)}
    for words in (["serve", "--config", "x"], ["node", "list", "--config", "x"], ["mappings", "check"]):
        done = subprocess.run(
            [REALMGATE, *words], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stdout) == (2, "")
        [line] = done.stderr.splitlines()
        assert line.startswith("realmgate: realmgate has a Python package named transformers, but ")
        assert f"{tmp_path / 'transformers' / '__init__.py'} (transformers 4.57.1, which is Hugging Face's)" in line
        assert "install realmgate in an environment of its own: python3 -m venv DIR" in line


def test_one_beside_ours_is_a_warning_of_serve(tmp_path: Path) -> None:
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path))
    gateway.environment |= other_package(tmp_path / "packages", with_code=False)
    gateway.start()
    assert gateway.stop() == 0
    assert "realmgate: warning: the environment of " in gateway.log() and "transformers 4.57.1" in gateway.log()


def test_no_other_one_is_no_warning(tmp_path: Path) -> None:
    gateway = make_gateway(tmp_path, embedded_realm(tmp_path))
    gateway.start()
    assert gateway.stop() == 0
    assert "transformers" not in gateway.log()
