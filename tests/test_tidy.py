"""The tree keeps its own rules. Each check is a function from files (path -> text) to problems, and comes with a bad
example that it must find: a check that cannot fail protects nothing.

What formatters, types and import rules can say is said by ruff, mypy and import-linter (`make check`); the rest is
here.
"""

from __future__ import annotations

import ast
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from gateway.cli.node_apply import read_file, read_realm_grants
from gateway.config.settings import SettingsProblems, load_settings
from mappings.language.citations import CITATIONS
from mappings.language.yaml_lines import Problem
from reconciliation.model.classes import CLASSES

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("console", "gateway", "mappings", "native_backend", "reconciliation", "transformers")
CODE = (".py", ".sh", ".c", ".h", ".java", ".js", ".yaml")
FUNCTION_LINES, FILE_LINES, LINE_CHARACTERS, ARCHITECTURE_LINES = 70, 400, 120, 150

Files = Mapping[str, str]
Check = Callable[[Files], Iterator[str]]
CHECKS: dict[str, tuple[Check, dict[str, str], int]] = {}


def check(problems: int = 1, **bad: str) -> Callable[[Check], Check]:
    """Register a check with files in which it must find so many problems. In a name `__` is a slash, `_d_` a dot."""

    def register(function: Check) -> Check:
        files = {name.replace("__", "/").replace("_d_", "."): text for name, text in bad.items()}
        CHECKS[function.__name__] = (function, files, problems)
        return function

    return register


@cache
def tree(text: str) -> ast.Module:
    return ast.parse(text)


@cache
def walked(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(text)))


def nodes(files: Files, *kinds: type[ast.AST], rooms: bool = False) -> Iterator[tuple[str, Any]]:
    for path, text in files.items():
        if path.endswith(".py") and (not rooms or path.split("/")[0] in ROOMS):
            yield from ((path, node) for node in walked(text) if isinstance(node, kinds))


# -- code

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@check(gateway__x_d_py="def f():\n" + "    pass\n" * 70)
def functions_are_short(files: Files) -> Iterator[str]:
    for path, node in nodes(files, *_FUNCTIONS):
        lines = node.end_lineno - node.lineno + 1
        if lines > FUNCTION_LINES:
            yield f"{path}:{node.lineno}: {node.name} has {lines} lines; cut it where a step has a name"


@check(tests__x_d_py="x = 1\n" * 401)
def files_are_short(files: Files) -> Iterator[str]:
    for path, text in files.items():
        if path.endswith(CODE) and text.count("\n") > FILE_LINES:
            yield f"{path}: {text.count(chr(10))} lines; a file is one idea"


@check(deploy__x_d_sh="#" * 121)
def lines_are_short(files: Files) -> Iterator[str]:
    for path, text in files.items():
        if path.endswith(CODE):
            for number, line in enumerate(text.splitlines(), 1):
                line = re.sub(r"  # (type: ignore|noqa)\b.*", "", line)  # orders to a tool are not read
                if len(line) > LINE_CHARACTERS:
                    yield f"{path}:{number}: {len(line)} characters"


@check(3, mappings__x_d_py="x = 1", mappings__y_d_py='"""May import: os."""', tests__y_d_py='"""May import: os."""')
def modules_say_what_they_are(files: Files) -> Iterator[str]:
    """The contracts of pyproject.toml say what they may import."""
    for path, text in files.items():
        if path.endswith(".py") and path.split("/")[0] in (*ROOMS, "bench", "tests"):
            docstring = ast.get_docstring(tree(text)) or ""
            silent = not docstring and path.split("/")[0] in ROOMS
            if silent or re.search(r"May imports?: ", docstring):
                yield f"{path}: its docstring says what it is, and not what it may import"


_CLOCK = "take the time from a clock object (native_backend/clock.py)"
_EDGES = (
    *("native_backend/clock.py", "native_backend/log/open.py", "gateway/serve/serve.py"),
    "reconciliation/cli/main.py",  # the auditor shares no code with the realm
)
_BANNED = {
    r"time\.(time|time_ns)": _CLOCK,
    r"datetime\.(datetime\.(now|utcnow|today)|date\.today)": _CLOCK,
    r"random\.(?!Random$)\w+": "take a random.Random(seed) from the caller, so that a seed repeats it",
    r"contextlib\.suppress\((Base)?Exception\)": "name the exception that is expected",
    r"print": "log it; only the command line writes, by sys.stdout.write",
}


_BAD_CALLS = """
import contextlib, datetime, random, time
from datetime import datetime as moment
from time import time_ns as now
now(), time.time(), moment.now(), datetime.date.today(), random.choice([1]), contextlib.suppress(Exception), print()
random.Random(7).choice([1]), time.monotonic(), contextlib.suppress(OSError), moment.fromisoformat("2026-01-01")
"""


@check(7, gateway__x_d_py=_BAD_CALLS)
def nothing_banned_is_called(files: Files) -> Iterator[str]:
    for path, node in nodes(files, ast.Call, rooms=True):
        name = _dotted(node, _imported(files[path]))
        for banned, instead in _BANNED.items():
            if re.fullmatch(banned, name) and not (instead == _CLOCK and path in _EDGES):
                yield f"{path}:{node.lineno}: {name}: {instead}"


@cache
def _imported(text: str) -> dict[str, str]:
    """What each name of a module stands for."""
    names: dict[str, str] = {}
    for node in walked(text):
        if isinstance(node, ast.Import):
            names.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom):
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    return names


def _dotted(call: ast.Call, imported: Mapping[str, str]) -> str:
    """The full name of what is called; with its argument for `suppress`. Methods of objects have no name here."""
    parts: list[str] = []
    function: ast.expr = call.func
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if not isinstance(function, ast.Name) or (parts and function.id not in imported):
        return ""
    name = ".".join([imported.get(function.id, function.id), *reversed(parts)])
    return f"{name}({ast.unparse(call.args[0])})" if name == "contextlib.suppress" and call.args else name


@check(2, bench__x_d_py="try: f()\nexcept Exception: pass\ntry: f()\nexcept: g()\ntry: f()\nexcept Exception: g()")
def no_exception_is_hidden(files: Files) -> Iterator[str]:
    for path, node in nodes(files, ast.ExceptHandler):
        broad = node.type is None or ast.unparse(node.type) in ("Exception", "BaseException")
        silent = all(isinstance(step, ast.Pass | ast.Continue | ast.Break) for step in node.body)
        if node.type is None or (broad and silent):
            yield f"{path}:{node.lineno}: catches whatever happens; name what is expected"


@check(3, gateway__link_manager_d_py="class LinkHelper: ...\ndef common_name(): ...")
def names_say_something(files: Files) -> Iterator[str]:
    empty = {"manager", "managers", "util", "utils", "utility", "helper", "helpers", "common", "misc"}
    for path in files:
        if path.endswith(CODE) and empty & set(_words(PurePosixPath(path).stem)):
            yield f"{path}: name it after what it is"
    for path, node in nodes(files, ast.ClassDef, *_FUNCTIONS):
        if empty & set(_words(node.name)):
            yield f"{path}:{node.lineno}: {node.name}: name it after what it is"


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


@check(gateway__x_d_py="import os", tests__test_x_d_py="import gateway.x, tests.y", tests__y_d_py="")
def every_module_is_used(files: Files) -> Iterator[str]:
    """A product module by another product module: its own test alone would keep it alive for ever."""
    used = set()
    for path, node in nodes(files, ast.Import, ast.ImportFrom):
        names = [alias.name for alias in node.names]
        module = getattr(node, "module", None)
        test = path.startswith("tests/")
        used |= {(name, test) for name in (names if module is None else [module, *(f"{module}.{n}" for n in names)])}
    for path, text in files.items():
        name = path.removesuffix(".py").replace("/", ".")
        entry = re.search(r"(^|\.)(test_\w+|conftest|__init__|__main__)$", name) or '__name__ == "__main__"' in text
        by_tests = path.startswith(("tests/", "native_backend/log/simulated/"))  # the log that simulations run on
        if path.endswith(".py") and not entry and (name, False) not in used and not (by_tests and (name, True) in used):
            yield f"{path}: no one imports it"


@check(2, tests__x_d_py="end = time.mono" + "tonic() + 20\nf(time" + "out=5)\n")
def waits_have_one_limit(files: Files) -> Iterator[str]:
    number = r"\w+ = time\.monotonic\(\) \+ \d|timeout=[0-5]?\d(\.\d+)?[,)]"
    for path, text in files.items():
        if path.startswith("tests/") and path.endswith(".py") and (waits := re.findall(rf".*(?:{number}).*", text)):
            yield from (f"{path}: a number of its own; wait by tests/kit/patience.py" for _ in waits)


@check(mappings__tables__x_d_yaml="profiles: {p: {rules: [{id: a, source: 'S-A1, S-A99'}]}}")
def every_source_can_be_looked_up(files: Files) -> Iterator[str]:
    for path, rule in _rules(files):
        for source in str(rule["source"]).split(","):
            if source.strip() not in CITATIONS:
                yield f"{path}: rule {rule['id']} cites {source.strip()}, which is not written anywhere"


def _rules(files: Files) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, text in files.items():
        if path.startswith("mappings/tables/"):
            document = yaml.safe_load(text)
            for part in document.get("profiles", {"": document}).values():
                yield from ((path, rule) for rule in part["rules"])


# -- documents

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def documents(files: Files) -> Iterator[tuple[str, str]]:
    return ((path, text) for path, text in files.items() if path.endswith(".md"))


@check(docs__x_d_md="# One\n\n# Two\n")
def a_document_has_one_title(files: Files) -> Iterator[str]:
    for path, text in documents(files):
        titles = re.findall(r"^# .*", _FENCE.sub("", text), re.MULTILINE)
        if len(titles) != 1 or not text.startswith(titles[0]):
            yield f"{path}: {len(titles)} titles; one, and it comes first"


@check(2, README_d_md="# X\n\n```yaml\nrealm: {kind: embedded}\nlimit: 1\n```\n\n```yaml\n- {id: x}\n```\n")
def every_snippet_works(files: Files) -> Iterator[str]:
    """Whole configurations and lists of nodes load; rules and scenarios are the shipped ones, word by word."""
    shipped = [rule for _, rule in _rules(files)]
    for path, text in files.items():
        if path.startswith("mappings/scenarios/"):
            shipped += yaml.safe_load(text)["tests"]
    for path, text in documents(files):
        for language, snippet in _FENCE.findall(text):
            if language == "yaml":
                content = yaml.safe_load(snippet)
                if isinstance(content, dict) and "realm" in content:
                    yield from (f"{path}: {problem}" for problem in _config_problems(snippet))
                elif isinstance(content, list) and all({"kind", "name", "realm"} & set(item) for item in content):
                    yield from (f"{path}: {problem}" for problem in _node_problems(snippet))
                elif not isinstance(content, list) or any(item not in shipped for item in content):
                    yield f"{path}: neither a configuration nor shipped rules: {snippet.splitlines()[0]}"


def _node_problems(snippet: str) -> list[Problem]:
    with tempfile.TemporaryDirectory() as directory:
        nodes = Path(directory, "nodes.yaml")
        nodes.write_text(snippet)
        return [*read_file(nodes, 1024)[1], *read_realm_grants(nodes)[1]]


def _config_problems(snippet: str) -> list[str]:
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory, "snippet.yaml")
        config.write_text(snippet)
        try:
            load_settings(config)
        except SettingsProblems as error:
            return [str(problem).removeprefix(f"{directory}/") for problem in error.problems]
    return []


@check(2, docs__x_d_md="# X\n\n[there](y.md) and [here](#no-such-heading), [but](x.md#x)\n")
def every_link_leads_somewhere(files: Files) -> Iterator[str]:
    for path, text in documents(files):
        for link in re.findall(r"\]\(([^)\s]+)\)", _FENCE.sub("", text)):
            target, _, heading = link.partition("#")
            to = os.path.normpath(PurePosixPath(path).parent / target) if target else path
            if re.match(r"[a-z]+:", link):
                continue
            if to not in files and not any(name.startswith(f"{to}/") for name in files):
                yield f"{path}: {link} leads nowhere"
            elif heading and heading not in _anchors(files[to]):
                yield f"{path}: {link}: no such heading"


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)", _FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@check(
    2,
    ARCHITECTURE_d_md="# X\n\n`gateway/no_such.py` and `make no-such`\n",
    Makefile="help: ## this",
    gateway__x_d_py="",
)
def what_documents_name_exists(files: Files) -> Iterator[str]:
    tops = {path.split("/")[0] for path in files if "/" in path}
    targets = set(re.findall(r"^([a-z-]+):", files.get("Makefile", ""), re.MULTILINE))
    for path, text in documents(files):
        for name in re.findall(r"`([\w.-]+(?:/[\w.-]+)+\.[a-z]+)`", text):
            placeholder = re.search(r"/[A-Z]+[_.]", name)
            if name.split("/")[0] in tops and name not in files and not placeholder:
                yield f"{path}: there is no {name}"
        for target in re.findall(r"(?:`|^ *)make ([a-z][a-z-]*)", text, re.MULTILINE):
            if target not in targets:
                yield f"{path}: there is no make {target}"


@check(len(CLASSES) + 1, docs__reconciliation_d_md="# X\n\n| P1 | lost write | m |\n")
def every_class_of_findings_is_documented(files: Files) -> Iterator[str]:
    rows = re.findall(r"^\| (\w+) \| (.*) \| (\w) \|$", files["docs/reconciliation.md"], re.MULTILINE)
    known = [(kind.code, kind.name, kind.severity) for kind in CLASSES.values()]
    yield from (f"docs/reconciliation.md: should have {row}" for row in known if row not in rows)
    yield from (f"docs/reconciliation.md: there is no {row}" for row in rows if row not in known)


@check(6, docs__adr__0002_d_md="# Two\n", docs__adr__README_d_md="[0001](0001-one.md) One")
def decisions_are_numbered_and_whole(files: Files) -> Iterator[str]:
    index = files.get("docs/adr/README.md", "")
    adrs = sorted(path for path in files if path.startswith("docs/adr/") and path != "docs/adr/README.md")
    for number, path in enumerate(adrs, 1):
        if not path.startswith(f"docs/adr/{number:04}-"):
            yield f"{path}: should be number {number}"
        if not re.search(r"^Status: .+\. Date: \d{4}-\d\d-\d\d\.$", files[path], re.MULTILINE):
            yield f"{path}: has no status and date"
        if f"]({path.rpartition('/')[2]}) {files[path].partition(chr(10))[0][7:]}" not in index:
            yield f"{path}: docs/adr/README.md does not list it under its title"
        yield from (
            f"{path}: has no {part}"
            for part in ("Context", "Decision", "Consequence")
            if f"\n## {part}\n" not in files[path]
        )


@check(ARCHITECTURE_d_md="\n" * 151)
def the_architecture_is_short(files: Files) -> Iterator[str]:
    lines = files.get("ARCHITECTURE.md", "").count("\n")
    if lines > ARCHITECTURE_LINES:
        yield f"ARCHITECTURE.md: {lines} lines; at most {ARCHITECTURE_LINES}"


@check(3, deploy__x_d_sh="cd /" + "work/main\ncurl https://files.pythonhosted" + ".org", y_d_lock="--index-" + "url x")
def nothing_ties_the_tree_to_a_machine(files: Files) -> Iterator[str]:
    """No path of the machine it was written on, no host that packages came from (ADR: no registry host in locks)."""
    path_of = r"(?<![\w.\-/}])/(?:work|root|home)(?:/\w|\b(?![\w-]))"
    host = r"\bpypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|repo1?\.maven\.|://\S*(?:artifactor[y]|nexu[s])"
    lock = r"--(?:extra-)?index-url|--find-links|\"resolved\":"
    for path, text in files.items():
        pattern = f"{path_of}|{host}" + (f"|{lock}" if re.search(r"lock(\.json)?$", path) else "")
        for number, line in enumerate(text.splitlines(), 1):
            match = re.search(pattern, line)
            if match:
                yield f"{path}:{number}: {match[0]}"


# -- the tests


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    """Every file that git does not ignore, a picture without bytes; known without git, as in an unpacked archive."""
    ignored = [".git", *(line.strip("/") for line in (ROOT / ".gitignore").read_text().split())]

    def kept(names: list[str]) -> list[str]:
        return [name for name in names if not any(fnmatchcase(name, pattern) for pattern in ignored)]

    texts = {}
    for directory, directories, names in os.walk(ROOT):
        directories[:] = kept(directories)
        for name in kept(names):
            path = Path(directory, name)
            content = path.read_bytes()
            texts[path.relative_to(ROOT).as_posix()] = "" if b"\0" in content else content.decode()
    return texts


@pytest.mark.parametrize("name", CHECKS)
def test_tidy(name: str, files: dict[str, str]) -> None:
    problems = list(CHECKS[name][0](files))
    assert not problems, "\n".join(["", *problems])


@pytest.mark.parametrize("name", CHECKS)
def test_the_check_can_fail(name: str) -> None:
    function, bad, problems = CHECKS[name]
    assert len(list(function(bad))) == problems
