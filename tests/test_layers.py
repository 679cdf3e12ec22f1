"""The contracts of pyproject.toml break where code breaks them: an import that points up, a circle, a file beside the
folders."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent.parent
PACKAGES = ("console", "gateway", "mappings", "native_backend", "reconciliation", "transformers")
TESTS = ("bench", "tests")
LINT = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
SOURCES = shutil.ignore_patterns("*.so", "__pycache__", "expanded", "tables", "schemas", "scenarios")


DOWN = "Arrows point down only; neighbours do not know each other"
ASKS = "The console asks gateways over HTTP: of their code it knows users, the configuration, and what answers mean"
KIT = "Tests and benchmarks share the kit only"
FILES_MAX = {"console": 4, "gateway": 1, "native_backend": 7, "mappings": 1, "transformers": 1, "reconciliation": 2}
FILES_BELOW_MAX = 21
TYPE_CHECKING_MAX = 10


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copied = tmp_path_factory.mktemp("layers")
    for package in (*PACKAGES, *TESTS):
        shutil.copytree(HERE / package, copied / package, ignore=SOURCES)
    shutil.copy(HERE / "pyproject.toml", copied)
    return copied


def lint(where: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LINT, "--no-logo", "--no-cache"], cwd=where, capture_output=True, text=True
    )
    return done.stdout + done.stderr


def test_the_code_keeps_its_layers(copy: Path) -> None:
    assert ", 0 broken" in lint(copy)


@pytest.mark.parametrize(
    ("file", "added", "broken"),
    [
        ("gateway/frames/frames.py", "from gateway.server.server import Server", "The gateway's folders point down"),
        (
            "native_backend/state/intervals.py",
            "from native_backend.journal.journal import Journal",
            "The realm's folders point down",
        ),
        ("gateway/auth/mechanisms.py", "from gateway.auth.sasl import SaslServer", "No import circle"),
        (
            "gateway/auth/mechanisms.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gateway.auth.sasl import SaslServer",
            "No import circle",
        ),
        (
            "mappings/language/words.py",
            "from mappings.compiler.compile import Table",
            "The tables' folders point down",
        ),
        (
            "transformers/message/marks.py",
            "from transformers.events.basic import Basic",
            "The transformers' folders point down",
        ),
        (
            "transformers/selector/terms.py",
            "from transformers.events import none",
            "The transformers' folders point down",
        ),
        (
            "reconciliation/model/window.py",
            "from reconciliation.read.landing import Landed",
            "The reconciliation's folders point down",
        ),
        ("mappings/language/globs.py", "from mappings.language import rules", "No import circle"),
        ("gateway/flat.py", "", "The gateway's folders point down"),
        ("native_backend/flat.py", "", "The realm's folders point down"),
        ("mappings/flat.py", "", "The tables' folders point down"),
        ("transformers/flat.py", "", "The transformers' folders point down"),
        ("reconciliation/flat.py", "", "The reconciliation's folders point down"),
        ("gateway/links/credit.py", "import asyncio", "asyncio lives around the gateway's sockets"),
        ("gateway/links/credit.py", "import cproton", "proton stays behind the engine's fence"),
        ("console/facts/history.py", "import asyncio", "asyncio lives around the gateway's sockets"),
        ("console/facts/history.py", "import console.web.app", "The console's folders point down"),
        ("console/pages/words.py", "import jinja2", "HTTP servers and templates live in the console's web"),
        ("console/web/app.py", "import gateway.session.gateway", ASKS),
        ("console/web/app.py", "import native_backend.realm", ASKS),
        ("gateway/admin/pages.py", "import console.facts.history", DOWN),
        ("tests/kit/wire/frames.py", "import bench.plan", KIT),
        ("tests/kit/wire/frames.py", "import tests.wire.conftest", KIT),
        ("tests/kit/wire/frames.py", "import tests.lanes", KIT),
        ("bench/plan.py", "import tests.wire.conftest", KIT),
        ("tests/fuzz/steps.py", "import tests.wire.conftest", KIT),
        ("gateway/links/credit.py", "import tests.kit.wire.frames", "The product knows no test and no benchmark"),
    ],
    ids=[
        *("up", "up-in-the-realm", "circle", "circle-of-types"),
        *("up-in-tables", "up-in-transformers", "beside", "up-in-reconciliation", "circle-in-tables"),
        *("flat", "flat-in-the-realm", "flat-in-tables", "flat-in-transformers", "flat-in-reconciliation"),
        *("asyncio", "proton"),
        *("asyncio-in-facts", "up-in-the-console", "templates-in-pages", "console-to-session", "console-to-realm"),
        "gateway-to-console",
        *("kit-to-bench", "kit-to-tests", "kit-to-the-suite", "bench-to-tests", "room-to-room", "product-to-tests"),
    ],
)
def test_what_breaks_them_is_seen(copy: Path, file: str, added: str, broken: str) -> None:
    path = copy / file
    before = path.read_text() if path.exists() else None
    path.write_text(f"{before or ''}\n{added}\n")
    try:
        output = lint(copy)
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_text(before)
    if "flat" in file:
        assert "flat" in output and "0 broken" not in output
    else:
        assert f"{broken} BROKEN" in " ".join(output.split())


def overfull(root: Path) -> list[str]:
    """Folders with more Python files than a reader finds his way in."""
    findings = []
    for top in (*FILES_MAX, *TESTS):
        for folder in [root / top, *(root / top).rglob("*/")]:
            name, count = str(folder.relative_to(root)), len(list(folder.glob("*.py")))
            if count > FILES_MAX.get(name, FILES_BELOW_MAX):
                findings.append(f"{name}: {count}")
    return findings


def test_folders_are_small(copy: Path) -> None:
    assert not overfull(HERE)
    planted = [
        copy / "gateway/flat.py",
        *(copy / f"{folder}/planted{at}.py" for folder in ("gateway/links", "tests/fuzz") for at in range(10)),
    ]
    for file in planted:
        file.write_text("")
    try:
        assert [finding.partition(":")[0] for finding in overfull(copy)] == ["gateway", "gateway/links", "tests/fuzz"]
    finally:
        for file in planted:
            file.unlink()


def test_few_imports_are_for_types_alone() -> None:
    """A block for types hides an arrow that points up. Those that are left save commands the time of an import."""
    files = [file for package in PACKAGES for file in (HERE / package).rglob("*.py")]
    blocks = [file for file in files for _ in range(file.read_text().count("if TYPE_CHECKING:"))]
    assert len(blocks) <= TYPE_CHECKING_MAX, blocks


def test_every_room_of_tests_is_in_the_contract() -> None:
    rooms = {folder.name for folder in (HERE / "tests").iterdir() if (folder / "__init__.py").exists()}
    rooms |= {file.stem for file in (HERE / "tests").glob("[!_]*.py") if not file.name.startswith("test_")}
    (kit,) = [contract for contract in contracts() if contract["name"] == KIT]
    assert {f"tests.{room}" for room in rooms} == set(re.findall(r"tests\.\w+", " ".join(kit["layers"])))


def contracts() -> list[dict[str, Any]]:
    tables = tomllib.loads((HERE / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return [dict(contract) for contract in tables]


def misplaced_folders(page: str) -> list[str]:
    """Packages whose folders the page does not name in the order of their contract. Folders of one layer stand in any
    order."""
    wrong = []
    for contract in contracts():
        for package in contract.get("containers", ()):
            bullet = page.partition(f"\n* `{package}/`:")[2].partition("\n* ")[0].partition("\n\n")[0]
            layers = [re.findall(r"\w+", layer) for layer in contract["layers"] if layer != "__main__"]
            named = [name.removesuffix(".py") for name in re.findall(r"`([\w.]+)`", bullet)]
            places = [[named.index(name) if name in named else -1 for name in layer] for layer in layers]
            flat = [place for layer in places for place in sorted(layer)]
            if -1 in flat or flat != sorted(flat):
                wrong.append(package)
    return wrong


def unnamed_exceptions(page: str) -> list[str]:
    """Imports that a contract allows to a few, and of which the page does not speak."""
    wrong = []
    page = page.partition("\n## Packages")[2].partition("\n## ")[0]
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", page))))
    for contract in contracts():
        for line in contract.get("ignore_imports", ()):
            source, _, target = line.partition(" -> ")
            parts = [part for part in source.split(".") if "*" not in part]
            ours = target.partition(".")[0] in PACKAGES
            folder = ".".join(part for part in target.split(".")[:2] if "*" not in part)
            if not words & set(parts[2:] or parts[1:] or parts) or (ours and f"`{folder}`" not in page):
                wrong.append(line)
    return wrong


def test_the_architecture_names_what_the_contracts_say() -> None:
    page = (HERE / "ARCHITECTURE.md").read_text()
    assert not misplaced_folders(page)
    assert not unnamed_exceptions(page)
    turned = page.replace("`serve` (the process), `server`", "`server`, `serve`").replace("`codec` (AMQP", "(AMQP")
    assert misplaced_folders(turned) == ["gateway", "transformers"]
    shorter = page.replace("`cli/drain`", "others").replace("`native_backend.clock`", "others")
    assert [line.partition(" -> ")[0] for line in unnamed_exceptions(shorter)] == [
        "gateway.cli.drain.*",
        "console.web.*",
        "console.poll.*",
    ]


IMPORTS_A_TEST = re.compile(r"^ *(?:from|import) (?:\S+\.)?test_|^ *from \S+ import .*\btest_\w", re.MULTILINE)


def imported_tests(root: Path) -> list[str]:
    """Files that import a test module: what several share is a module of its own."""
    files = sorted([*(root / "tests").rglob("*.py"), *(root / "bench").rglob("*.py")])
    return [str(file.relative_to(root)) for file in files if IMPORTS_A_TEST.search(file.read_text())]


def test_no_test_module_is_imported(copy: Path) -> None:
    assert not imported_tests(HERE)
    for at, line in enumerate(("from tests.wire.attach.test_attach import one", "from tests.wire import test_attach")):
        planted = copy / "tests" / "fuzz" / f"planted{at}.py"
        planted.write_text(f"{line}\n")
    assert imported_tests(copy) == ["tests/fuzz/planted0.py", "tests/fuzz/planted1.py"]


@pytest.mark.parametrize("room", PACKAGES)
def test_the_rooms_are_ours(room: str) -> None:
    """`transformers` is also a well-known package: one that was installed beside ours would be found first."""
    file = importlib.import_module(room).__file__
    assert file is not None and Path(file).is_relative_to(HERE)
