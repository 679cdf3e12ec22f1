"""`python -m console`: what `realmgate console` starts as a process of its own.

Exit codes: 0 it was stopped, 2 it could not run. What is missing or wrong is a sentence on stderr.
"""

import re
import sys
from importlib.metadata import requires

COULD_NOT_RUN = 2
_EXTRA = re.compile(r"""extra == ["']console["']""")
_PACKAGES = ("jinja2", "markupsafe", "starlette", "uvicorn", "h11", "anyio", "click")
"""Modules that `pip install realmgate[console]` brings."""


def main() -> int:
    from console.settings import SettingsError, read_settings

    try:
        settings = read_settings(sys.argv[1:])
        from console.web.serve import serve  # takes its time, and may be missing

        serve(settings)
    except SettingsError as error:
        sys.stderr.write(f"console: {error}\n")
        return COULD_NOT_RUN
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PACKAGES:
            raise
        sys.stderr.write(f"console: the Python package {error.name} is not installed: {_remedy()}\n")
        return COULD_NOT_RUN
    except OSError as error:
        sys.stderr.write(f"console: {error.filename or '--listen'}: {error.strerror or error}\n")
        return COULD_NOT_RUN
    return 0


def _remedy() -> str:
    """What to install, by its own names: the index has no realmgate."""
    extra = [package.partition(";")[0].strip() for package in requires("realmgate") or () if _EXTRA.search(package)]
    return f"{sys.executable} -m pip install {' '.join(repr(package) for package in extra)}"


if __name__ == "__main__":
    sys.exit(main())
