"""`python -m reconciliation`: what `realmgate reconcile` and `realmgate what-if` start as a process of its own."""

import re
import sys
import traceback
from importlib.metadata import PackageNotFoundError, requires

COULD_NOT_RUN = 2
_PACKAGES = {
    "pyspark": "pyspark", "py4j": "pyspark", "pyarrow": "pyarrow", "numpy": "numpy", "kafka": "kafka-python",
    "orjson": "orjson",
}  # fmt: skip
"""Top module -> the package that brings it."""
_EXTRA = re.compile(r"""extra == ["']reconcile["']""")
"""Of what `pip install realmgate[reconcile]` installs besides."""


def lacking(error: ModuleNotFoundError) -> str:
    """What to install, in a line: one package, or all of the extra; empty when what is missing is no other package's
    module."""
    package = _PACKAGES.get((error.name or "").partition(".")[0])
    if package is None:
        return ""
    required = _requirements()
    extra = [requirement for requirement in required if _EXTRA.search(requirement)]
    if not any(_is_of(package, requirement) for requirement in extra):
        extra = [requirement for requirement in required if _is_of(package, requirement)] or [package]
    exact = " ".join(f"'{requirement.partition(';')[0].strip()}'" for requirement in extra)
    return f"reconcile: the Python package {package} is not installed: {sys.executable} -m pip install {exact}"


def _requirements() -> list[str]:
    try:
        return requires("realmgate") or []
    except PackageNotFoundError:  # its files came in an archive
        return []


def _is_of(package: str, requirement: str) -> bool:
    return re.match(rf"{re.escape(package)}\b(?!-)", requirement) is not None


if __name__ == "__main__":  # a process that sums for this one (`summing.link`) reads this file, too
    try:
        if sys.argv[1:2] == ["what-if"]:
            from reconciliation.cli import what_if

            code = what_if.main(sys.argv[2:])
        else:
            from reconciliation.cli.main import main

            code = main(sys.argv[1:])
    except Exception as error:  # ours to mend: shown in full, but never with the exit code that means "anomalies found"
        remedy = lacking(error) if isinstance(error, ModuleNotFoundError) else ""
        if remedy:
            sys.stderr.write(f"{remedy}\n")
        else:
            traceback.print_exc()
        code = COULD_NOT_RUN
    sys.exit(code)
