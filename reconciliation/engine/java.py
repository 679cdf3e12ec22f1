"""Which Java runs Spark, and where its archive of Spark's classes is (`reconciliation.engine.class_archive`).

Errors: `SetupError`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pyspark

from reconciliation.model.errors import SetupError

JAVA_MIN = 17
JAVA_INSTALL = "apt-get install -y openjdk-17-jre-headless"
ARCHIVES = "spark-*.jsa"


def command() -> Path:
    """The one that Spark starts: the one thing that pip does not bring."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None or not Path(java).exists():
        raise SetupError(f"Spark needs Java {JAVA_MIN}: {JAVA_INSTALL}")
    return Path(java)


def check() -> None:
    """It is new enough."""
    java = command()
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr  # noqa: S603
    version = re.search(r'version "(\d+)', printed)
    if version is None or int(version[1]) < JAVA_MIN:
        raise SetupError(
            f"Spark needs Java {JAVA_MIN}, {java} is {version[1] if version else 'unknown'}: {JAVA_INSTALL}"
        )


def archive_for(directory: Path) -> Path:
    """Where the archive of this Java and this Spark is, or would be."""
    about = command().resolve().parent.parent / "release"
    if not about.is_file():
        raise SetupError(f"{about} is not there, which says what Java it is")
    named = sha256(about.read_bytes() + f"{pyspark.__version__} {pyspark.__file__}".encode()).hexdigest()
    return directory / ARCHIVES.replace("*", named[:16])


def archive_in(directory: Path) -> Path | None:
    """None: it is not there."""
    try:
        archive = archive_for(directory)
    except SetupError:
        return None
    return archive if archive.is_file() else None
