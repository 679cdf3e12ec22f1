"""`realmgate`: the command line. Reads the configuration, starts what is asked for, tells an operator what is wrong.

Exit codes: 0 done, 1 what was asked for is not so (an unknown node; anomalies found; tables with problems), 2 it could
not run. An operator's mistake is told in words on stderr, never by a traceback. What a command needs is imported when
it runs, so that `node` commands take well below a second. May import: `gateway`, `native_backend`, `mappings`, the
standard library.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from gateway.access_arguments import add_acl, add_user
from gateway.realm_arguments import add_durable, add_node, add_queue
from native_backend.log import FORMAT, LogError

if TYPE_CHECKING:
    pass

DONE, NOT_SO, COULD_NOT_RUN = 0, 1, 2
_PASSED_ON = ("mappings", "reconcile")  # these read their own arguments


def main() -> NoReturn:
    """The entry point of `realmgate`."""
    sys.exit(run(sys.argv[1:]))


def run(argv: list[str]) -> int:
    """One command; its exit code."""
    try:
        if argv and argv[0] in _PASSED_ON:
            return _mappings(argv[1:]) if argv[0] == "mappings" else _reconcile(argv[1:])
        arguments = _parser().parse_args(argv)
        code = _user(arguments) if arguments.command == "user" else _configured(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # `realmgate node list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOT_SO
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="realmgate",
        description="An AMQP 1.0 gateway onto a native messaging realm kept on Kafka.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which version this is")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve until SIGTERM", allow_abbrev=False)
    _add_config(serve)
    node = commands.add_parser("node", help="create, change, list, show and delete nodes", allow_abbrev=False)
    add_node(node, _add_config)
    add_durable(commands.add_parser("durable", help="list, show, seek and delete durables"), _add_config)
    add_queue(commands.add_parser("queue", help="peek at, purge and move events"), _add_config)
    add_acl(commands.add_parser("acl", help="who may do what", allow_abbrev=False), _add_config)
    add_user(commands.add_parser("user", help="make entries for the file of users", allow_abbrev=False))
    commands.add_parser("mappings", help="check, test, explain, expand and compare mapping tables", add_help=False)
    commands.add_parser("reconcile", help="say whether the realm holds what was told", add_help=False)
    return parser


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", type=Path, required=True, help="see docs/configuration.md")


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        sys.stdout.write(f"realmgate {version('realmgate')}\n")
        parser.exit(DONE)


def _configured(arguments: argparse.Namespace) -> int:
    """The commands that read a configuration."""
    from gateway.open_log import where
    from gateway.settings import SettingsProblems, load_settings
    from mappings import MappingProblems
    from native_backend.nodes import NodeError
    from native_backend.properties import PropertyError
    from transformers import TransformerError

    try:
        settings = load_settings(arguments.config)
    except SettingsProblems as error:
        return _tell(error.problems)
    try:
        if arguments.command == "node":
            from gateway import node_commands

            return node_commands.run(arguments, settings, sys.stdout)
        if arguments.command == "durable":
            from gateway import durable_commands

            return durable_commands.run(arguments, settings, sys.stdout)
        if arguments.command == "queue":
            from gateway import queue_commands

            return queue_commands.run(arguments, settings, sys.stdout)
        if arguments.command == "acl":
            from gateway import acl_commands

            return acl_commands.run(arguments, settings, sys.stdout)
        if arguments.command == "replay":
            from gateway import replay

            return replay.run(arguments, settings, sys.stdout)
        from gateway.serving import serve

        return serve(settings)
    except MappingProblems as error:
        return _tell(error.problems)
    except TransformerError as error:
        return _tell([error])
    except NodeError as error:
        sys.stderr.write(f"realmgate: {error}\n")
        return NOT_SO
    except PropertyError as error:
        sys.stderr.write("".join(f"realmgate: {problem}\n" for problem in error.problems))
        return NOT_SO
    except LogError as error:
        return _tell([f"realmgate: {where(settings)}: {error}; {_remedy(error)}"])
    except sqlite3.Error as error:
        return _tell([f"realmgate: {where(settings)}: {error}; may this user write there, and is the disk full?"])
    except BrokenPipeError:
        raise
    except OSError as error:
        return _tell([f"realmgate: {error.strerror or error}{f': {error.filename}' if error.filename else ''}"])


def _user(arguments: argparse.Namespace) -> int:
    from gateway import user_commands

    return user_commands.run(arguments, sys.stdin, sys.stdout)


def _tell(problems: Sequence[object]) -> int:
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return COULD_NOT_RUN


def _remedy(error: LogError) -> str:
    """What an operator does about it."""
    cause = error.failure.cause
    if cause == "fenced":
        return "another gateway serves this realm: stop it, or give this one another realm"
    if cause == "refused":
        return "correct realm.client, or give its user the right to do so"
    if error.failure.code == FORMAT:
        return "a newer release wrote it: use that one, or give this gateway another realm"
    if cause in ("unavailable", "indeterminate"):
        return "start it, or correct realm in the configuration; then try again"
    return "these are the log's own words: mend what they name, then try again"


def _mappings(argv: list[str]) -> int:
    if argv[:1] == ["explain"] and any(word.startswith("--record") for word in argv):
        from gateway.replay import record_arguments

        return _configured(record_arguments(argv[1:]))
    from mappings.commands import main as commands_main
    from transformers.installed import complaint_about

    return commands_main(argv, sys.stdout, complaint_about)


def _reconcile(argv: list[str]) -> NoReturn:
    """Becomes the job's process: its exit code, and the signals it is sent, are its own. -P: the installed job, not
    what lies in the directory we happen to be in."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "reconciliation", *argv])  # noqa: S606


if __name__ == "__main__":
    main()
