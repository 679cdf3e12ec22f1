"""What is looked at on this machine: packages, disk, certificates, users, the way in, limits, Java, the last verdict.

Each check yields findings and raises nothing. Blocks.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

from gateway.auth import certificate_ends
from gateway.cli.doctor.finding import Finding, fail, not_looked_at, ok, warn
from gateway.cli.gateways.admin_client import AdminProblem, addresses, fetch
from gateway.config.exposure import exposures
from gateway.config.file_modes import open_to_all, realm_file
from gateway.config.settings import EmbeddedRealm, Settings
from gateway.serve.file_limit import OWN, files_of_stores
from gateway.verdict.answers import read_health
from gateway.verdict.reports import ACKNOWLEDGED, Reports
from gateway.verdict.samples import WrongAnswer
from gateway.verdict.standing import SERVES
from native_backend.log.port import Inspection, LogError

DISK_LOW, _DISK_FULL = 2 << 30, 200 << 20
_SOON_S = 30 * 86_400
_VERDICT_S = 2 * 86_400
_JAVA_S = 60.0
_JAVA = """
import sys
from reconciliation.engine.connector import CONNECTOR, jars_in
from reconciliation.engine.java import check
check()
if sys.argv[1] == "kafka":
    jars_in(None)
print(CONNECTOR)
"""


def packages() -> Iterator[Finding]:
    """Those that a version is demanded of."""
    wrong = 0
    for requirement in requires("realmgate") or ():
        name, _, wanted = requirement.partition(";")[0].strip().partition("==")
        if "extra ==" in requirement or not wanted:
            continue
        try:
            installed = version(name)
        except PackageNotFoundError:
            installed = "not installed"
        if installed != wanted:
            wrong += 1
            yield warn("versions", f"{name} is {installed}", f"{sys.executable} -m pip install {name}=={wanted}")
    if not wrong:
        yield ok("versions", f"realmgate {version('realmgate')}, Python {sys.version.split()[0]}, packages as demanded")


def disk(settings: Settings, inspected: Inspection | LogError | None) -> Iterator[Finding]:
    if isinstance(settings.realm, EmbeddedRealm):
        free, where = shutil.disk_usage(settings.realm.path).free, f"the disk of {settings.realm.path}"
    elif not isinstance(inspected, Inspection) or inspected.free_bytes is None:
        yield not_looked_at(
            "disk", "the brokers do not say how full their disks are (Kafka 3.3, Describe on the cluster)"
        )
        return
    else:
        free, where = inspected.free_bytes, "the fullest disk of the brokers"
    words, remedy = (
        f"{where} has {free >> 20} MiB free",
        "make room, or let messages and evidence be kept for less long",
    )
    if free < _DISK_FULL:
        yield fail("disk", words, remedy)
    elif free < DISK_LOW:
        yield warn("disk", words, remedy)
    else:
        yield ok("disk", words)


def certificates(settings: Settings, now_s: float) -> Iterator[Finding]:
    """`now_s`: seconds since 1970."""
    if settings.tls is None:
        yield ok("certificates", "none are configured")
        return
    for path in {settings.tls.certificate, settings.tls.client_ca} - {None}:
        assert path is not None
        ends = [*certificate_ends.ends(path)]
        if not ends:
            yield not_looked_at("certificates", f"{path}: no certificate can be read in it")
            continue
        left_s = min(ends) - now_s
        until = datetime.fromtimestamp(min(ends), UTC).strftime("%Y-%m-%d")
        remedy = "renew it; the gateway reads the file again by itself"
        if left_s < 0:
            yield fail("certificates", f"{path}: it expired on {until}", remedy)
        elif left_s < _SOON_S:
            yield warn("certificates", f"{path}: it expires on {until}", remedy)
        else:
            yield ok("certificates", f"{path}: it holds until {until}")


def users(settings: Settings) -> Iterator[Finding]:
    """The file itself was read with the configuration."""
    file = settings.security.users_file
    if file is None:
        yield ok("users", "no users file is configured")
    elif words := open_to_all(file):
        what, _, remedy = words.rpartition(": ")
        yield warn("users", what, remedy)
    else:
        yield ok("users", f"{file} can be read")
    if weakness := settings.security.users.weakness:
        what, _, remedy = weakness.rpartition(": ")
        yield warn("users", what, remedy)


def realm_mode(settings: Settings) -> Iterator[Finding]:
    """Of the embedded realm's file."""
    if words := open_to_all(realm_file(settings)):
        what, _, remedy = words.rpartition(": ")
        yield warn("realm file", what, remedy)


def exposure(settings: Settings, has_grants: bool) -> Iterator[Finding]:
    exposed = [*exposures(settings, has_grants)]
    for words in exposed:
        what, _, remedy = words.rpartition(": ")
        yield warn("open", what, remedy)
    if not exposed:
        yield ok("open", "nothing is open to other machines without a login")


def files(settings: Settings) -> Iterator[Finding]:
    wanted = settings.limits.connections + OWN + files_of_stores(settings)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if 0 <= hard < wanted:
        words = f"this user may open {hard} files; limits.connections and limits.stores_read take {wanted}"
        yield warn("file limit", words, "raise the hard limit (ulimit -Hn; LimitNOFILE= of a systemd unit)")
    else:
        yield ok("file limit", f"this user may open {'any number of' if hard < 0 else hard} files, {wanted} are needed")


def spark(settings: Settings) -> Iterator[Finding]:
    """As the reconciliation itself finds them; pyspark is an extra that a gateway does not need."""
    if find_spec("pyspark") is None:
        yield not_looked_at("spark", "pyspark is not installed: realmgate reconcile runs where it is")
        return
    kind = "embedded" if isinstance(settings.realm, EmbeddedRealm) else "kafka"
    try:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-P", "-c", _JAVA, kind], capture_output=True, text=True, check=False, timeout=_JAVA_S
        )
    except subprocess.TimeoutExpired:
        yield not_looked_at("spark", f"Java and pyspark did not answer within {_JAVA_S:.0f} s")
        return
    if done.returncode == 0:
        yield ok("spark", f"Java and pyspark are there; the connector is {done.stdout.strip()}")
        return
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1].rpartition("Error: ")[2]
    what, _, fetch = last.rpartition("; this fetches it: ")
    if what:
        yield warn("spark", what, f"{fetch}; where it is in another place: realmgate reconcile --jars DIR")
        return
    yield warn(
        "spark",
        f"realmgate reconcile cannot run here: {last}",
        "install Java 17 and the packages that realmgate reconcile names, or reconcile elsewhere",
    )


def running(settings: Settings) -> Iterator[Finding]:
    """What the gateway itself says is wrong, evidence that waits among it."""
    try:
        [url] = addresses(None, settings)
        health = read_health(fetch(url, "/health", {})[1])
    except (AdminProblem, WrongAnswer) as error:
        yield not_looked_at("gateway", str(error))
        return
    state, problems = health["state"], health["problems"]
    for problem in problems:
        yield fail("gateway", f"{problem['about']}: {problem['detail']}", problem["remedy"])
    if state not in (*SERVES, "standby"):
        why = f": {health['detail']}" if health["detail"] else ""
        yield warn(
            "gateway", f"it is {state} and serves no peer{why}", "read its log; realmgate serve says what it waits for"
        )
    elif not problems:
        yield ok(
            "gateway", f"it is {state}, {health['evidence']['pending'] or 0:.0f} evidence records are on their way"
        )


def verdict(reports: Path | None, now_s: float) -> Iterator[Finding]:
    """The report in a directory that `reconcile --out` was given: docs/reconciliation.md, "What it leaves in DIR"."""
    if reports is None:
        yield not_looked_at("verdict", "name the directory of the reports with --reports DIR")
        return
    last = Reports([reports]).read()[0]
    if last.problem:
        yield warn("verdict", last.problem, f"realmgate reconcile --out {reports}")
        return
    age_s = now_s - last.at_us / 1_000_000
    words = f"{last.verdict}, {age_s / 3600:.1f} hours ago"
    if last.verdict not in ("clean", ACKNOWLEDGED):
        yield fail("verdict", f"{words}: {last.sentence}", f"read {last.directory / 'summary.txt'}")
    elif age_s > _VERDICT_S:
        yield warn("verdict", words, f"realmgate reconcile --out {reports}")
    else:
        yield ok("verdict", f"{words}: {last.sentence}" if last.verdict == ACKNOWLEDGED else words)
