"""The lines that README shows for a first message work as they are written, with the gateway of `make run`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.interop.clients import lines_of_go, lines_of_java, lines_of_javascript
from tests.kit.patience import HANG_S
from tests.kit.processes.gateway import GatewayProcess
from tests.kit.processes.toolchains import NEEDS_GO

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
CONFIGURATION = yaml.safe_load((ROOT / "deploy/embedded.yaml").read_text())
HOST, PORT = "127.0.0.1", 5672
JAVA = """import jakarta.jms.*;
public class First {{
  public static void main(String[] args) throws Exception {{
{lines}
  }}
}}
"""
GO = """package main

import (
	"context"
	"fmt"

	"github.com/Azure/go-amqp"
)

func main() {{
{lines}
}}
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    """As `make run` starts it, but for its port and its directory."""
    assert CONFIGURATION["listen"] == [f"amqp://{HOST}:{PORT}"]
    settings = {**CONFIGURATION, "realm": {"kind": "embedded", "path": str(tmp_path / "realm")}}
    process = GatewayProcess(tmp_path / "gateway.yaml", tmp_path / "gateway.log", settings=settings)
    process.start()
    yield process
    assert process.stop() == 0


def lines(language: str, gateway: GatewayProcess) -> str:
    """The block of README in that language, for that gateway."""
    [block] = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    assert str(PORT) in block and len(block.splitlines()) <= 10
    return str(block).replace(str(PORT), str(gateway.port))


def test_python(gateway: GatewayProcess) -> None:
    command = [sys.executable, "-c", lines("python", gateway)]
    assert subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=True).stdout == "hello\n"


def test_java(gateway: GatewayProcess, tmp_path: Path) -> None:
    source = tmp_path / "First.java"
    source.write_text(JAVA.format(lines=lines("java", gateway)))
    assert lines_of_java(source) == "hello"


def test_javascript(gateway: GatewayProcess, tmp_path: Path) -> None:
    source = tmp_path / "first.js"
    source.write_text(lines("javascript", gateway))
    assert lines_of_javascript(source) == "hello"


@NEEDS_GO
def test_go(gateway: GatewayProcess, tmp_path: Path) -> None:
    source = tmp_path / "first" / "first.go"
    source.parent.mkdir()
    source.write_text(GO.format(lines=lines("go", gateway)))
    assert lines_of_go(source) == "hello"
