"""Where the configuration is looked for, by every command that reads one.

In order: `--config`; the environment's REALMGATE_CONFIG; /etc/realmgate/realmgate.yaml; the user's own file, which
`realmgate serve` writes where there is none of these. The first one that is there counts, whatever stands in it: a file
that cannot be read or is wrong is a mistake, and no reason to take the next one. Errors: `NoConfiguration`.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

from gateway.cli.output import print_error

VARIABLE: Final = "REALMGATE_CONFIG"
SYSTEM_FILE: Final = Path("/etc/realmgate/realmgate.yaml")
_INSTEAD: Final = ("url", "gateway")  # options that say by themselves where to ask


class NoConfiguration(Exception):
    """No file was found, or none could be begun; says where it was looked for and what to do."""


def add_config(parser: argparse._ActionsContainer) -> None:
    about = f"see docs/configuration.md; default: {VARIABLE}, {SYSTEM_FILE}, or the user's own file"
    parser.add_argument("--config", metavar="FILE", type=Path, help=about)


def find_configuration(arguments: argparse.Namespace) -> None:
    """Sets `arguments.config` where the command reads a configuration. Raises NoConfiguration."""
    says_where = any(getattr(arguments, option, None) for option in _INSTEAD)
    reads_realm = arguments.command == "trace" or getattr(arguments, "behalf", None)  # whatever gateway is asked, too
    if "config" in arguments and (reads_realm or not says_where):
        arguments.config = configuration_file(arguments.config, begin=arguments.command == "serve")


def configuration_file(named: Path | None, begin: bool = False) -> Path:
    """The first that is there. `begin`: write the user's own one where there is none. Raises NoConfiguration."""
    if named is not None:
        return named
    if variable := os.environ.get(VARIABLE):
        if not _is_there(Path(variable)):
            raise NoConfiguration(
                f"{VARIABLE} names {variable}, which is not there: correct it, or write --config FILE"
            )
        return Path(variable)
    if _is_there(SYSTEM_FILE):
        return SYSTEM_FILE
    path = own_file()
    looked_at = f"there is no --config, no {VARIABLE} and no {SYSTEM_FILE}"
    if not _is_there(path):
        if not begin:
            remedy = "write --config FILE; `realmgate config init --config FILE` writes a first one"
            raise NoConfiguration(f"{looked_at}, nor is {path} there: {remedy}")
        _begin(path)
    print_error(f"{looked_at}: {path} is used; edit it, or name another file by --config or {VARIABLE}")
    return path


def with_configuration(argv: list[str]) -> list[str]:
    """The words of a command that reads its own, with --config in them. Raises NoConfiguration."""
    parser = argparse.ArgumentParser(add_help=False)
    add_config(parser)
    known, others = parser.parse_known_args(argv)
    if known.config is not None or {"-h", "--help"}.intersection(argv):
        return argv
    return ["--config", str(configuration_file(None)), *others]


def is_own(path: Path) -> bool:
    """It is the file that `serve` writes where there is none."""
    try:
        return path == own_file()
    except NoConfiguration:
        return False


def own_file() -> Path:
    """The user's own, beside the realm that it names. Source: XDG Base Directory Specification. Raises
    NoConfiguration."""
    data = os.environ.get("XDG_DATA_HOME", "")
    if Path(data).is_absolute():
        return Path(data, "realmgate", "realmgate.yaml")
    try:
        return Path.home() / ".local" / "share" / "realmgate" / "realmgate.yaml"
    except RuntimeError:
        raise NoConfiguration("this user has no home directory for a realm: write --config FILE") from None


def _is_there(path: Path) -> bool:
    """Also a link to nothing, and what this user may not see: it was meant to be read."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _begin(path: Path) -> None:
    """An embedded realm beside it, on loopback, for this user alone. Of several starts at once each writes the same."""
    from gateway.cli.configuration.first_file import first_file  # takes its time

    text = first_file(None, [], {"realm.path": "realm", "nodes.create_on_attach": ["demo.*"]})
    written = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        written.write_text(text, encoding="utf-8")
        written.replace(path)
    except OSError as error:
        words = f"{error.filename or path} cannot be written: {error.strerror}"
        raise NoConfiguration(
            f"{words}: write --config FILE, or set XDG_DATA_HOME to a directory of this user"
        ) from None
