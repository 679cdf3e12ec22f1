"""`realmgate`: the command line. Reads the configuration, starts what is asked for, tells an operator what is wrong.

Exit codes: 0 done, 1 what was asked for is not so (an unknown node; anomalies found; tables with problems), 2 it could
not run. An operator's mistake gives a sentence on stderr, never a traceback. What a command needs is imported when
it runs, so that `node` commands take well below a second.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from types import FrameType

    from gateway.config.settings import Settings

DONE, NOT_SO, COULD_NOT_RUN = 0, 1, 2


def main() -> NoReturn:
    """The entry point of `realmgate`."""
    if sys.argv[1:2] == ["serve"]:  # before what takes its time is imported: the first process of a container would
        for number in (signal.SIGTERM, signal.SIGINT):  # not hear a signal that it has no handler for
            signal.signal(number, _end)
    sys.exit(run(sys.argv[1:]))


def _end(number: int, _: FrameType | None) -> None:
    """Until the realm is being opened (`gateway.serve.open_realm` goes on from there)."""
    os.write(2, f"realmgate: {signal.Signals(number).name} before anything was open\n".encode())
    os._exit(DONE)


def run(argv: list[str]) -> int:
    """One command; its exit code."""
    from gateway.cli.configuration.search import NoConfiguration, find_configuration
    from gateway.serve.package_clash import replaced
    from native_backend.log.library_version import WrongLibrary

    try:
        if clash := replaced():  # first: nothing else can be trusted
            return _tell([f"realmgate: {clash}"])
        if argv and argv[0] in _PASSED:
            return _PASSED[argv[0]](argv[1:])
        arguments = build_parser(argv[0] if argv else "").parse_args(argv)
        find_configuration(arguments)
        code = _COMMANDS.get(arguments.command, _configured)(arguments)
        sys.stdout.flush()
        return code
    except (NoConfiguration, WrongLibrary) as error:
        return _tell([f"realmgate: {error}"])
    except BrokenPipeError:  # `realmgate node list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOT_SO
    except KeyboardInterrupt:
        return 130


def build_parser(command: str = "") -> argparse.ArgumentParser:
    """Of all commands. With `command`, the arguments of some others are left out: what those need is imported in more
    time than a command takes."""
    from gateway.cli.audit.arguments import add_audit
    from gateway.cli.client.arguments import add_client
    from gateway.cli.configuration.arguments import add_configuration
    from gateway.cli.configuration.search import add_config
    from gateway.cli.decisions import add_decisions
    from gateway.cli.doctor.arguments import add_doctor
    from gateway.cli.drain.arguments import add_drain
    from gateway.cli.gateways.peer_arguments import add_peers
    from gateway.cli.imports.arguments import add_import
    from gateway.cli.trace.arguments import add_trace

    parser = _Parser(
        prog="realmgate",
        description="An AMQP 1.0 gateway onto a native messaging realm kept on Kafka.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="say which version this is")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve until SIGTERM", allow_abbrev=False)
    add_config(serve)
    config = commands.add_parser("config", help="check, show and begin a configuration", allow_abbrev=False)
    add_configuration(config)
    for name, about in _ON_REQUEST.items():
        added = commands.add_parser(name, help=about, allow_abbrev=False)
        if command in ("", name):
            _add(name, added)
    add_decisions(commands.add_parser("decisions", help="list what peers were refused"))
    add_audit(commands.add_parser("audit", help="who gave which command, and why", allow_abbrev=False))
    add_peers(commands)
    add_client(commands)
    add_drain(commands.add_parser("drain", help="move the messages of another broker's queue here", allow_abbrev=False))
    add_import(commands.add_parser("import", help="make a file of nodes of another broker's", allow_abbrev=False))
    add_trace(commands.add_parser("trace", help="what became of one message", allow_abbrev=False))
    add_doctor(commands.add_parser("doctor", help="look for what is wrong", allow_abbrev=False))
    commands.add_parser("mappings", help="check, test, explain, expand and compare mapping tables", add_help=False)
    commands.add_parser("console", help="show pages for operators over one or several gateways", add_help=False)
    commands.add_parser("reconcile", help="check whether the realm holds what peers were answered", add_help=False)
    return parser


_ON_REQUEST = {
    "node": "create, change, list, show and delete nodes",
    "durable": "list, show, seek and delete durables",
    "queue": "peek at, purge, move and resend events",
    "acl": "who may do what",
    "user": "make entries for the users file",
    "what-if": "what other tables would have decided",
}
"""Commands whose arguments are made from what the realm or the tables know."""


def _add(name: str, parser: argparse.ArgumentParser) -> None:
    if name == "what-if":
        from gateway.cli.what_if_arguments import add_what_if

        add_what_if(parser)
        return
    from gateway.cli import arguments

    if name == "user":
        arguments.add_user(parser)
        return
    added = {"node": arguments.add_node, "durable": arguments.add_durable, "queue": arguments.add_queue}
    added.get(name, arguments.add_acl)(parser)


class _Parser(argparse.ArgumentParser):
    """A word that a command does not know is that command's mistake: its usage is printed, not that of all."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        sys.stdout.write(f"realmgate {version('realmgate')}\n")
        parser.exit(DONE)


def _configured(arguments: argparse.Namespace) -> int:
    """The commands that read a configuration."""
    from gateway.config.settings import SettingsProblems, load_settings

    try:
        settings = load_settings(arguments.config)
    except SettingsProblems as error:
        return _tell(error.problems)
    return _reported(settings, lambda: _on_the_realm(arguments, settings))


def _reported(settings: Settings | None, work: Callable[[], int]) -> int:
    """Its exit code. What it could not do is a line on stderr."""
    import sqlite3

    from gateway.cli.answering_log import remedy_of
    from gateway.config.settings import SettingsProblems
    from mappings import MappingProblems
    from native_backend.log.port import LogError
    from native_backend.nodes.node import NodeError
    from native_backend.nodes.properties import PropertyError
    from transformers import TransformerError

    place = "" if settings is None else f"{settings.realm.place}: "
    try:
        return work()
    except (MappingProblems, SettingsProblems) as error:
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
        remedy = "" if settings is None else f"; {remedy_of(error, settings)}"
        return _tell([f"realmgate: {place}{error}{remedy}"])
    except sqlite3.Error as error:
        return _tell([f"realmgate: {place}{error}; may this user write there, and is the disk full?"])
    except BrokenPipeError:
        raise
    except OSError as error:
        return _tell([f"realmgate: {error.strerror or error}{f': {error.filename}' if error.filename else ''}"])


def _on_the_realm(arguments: argparse.Namespace, settings: Settings) -> int:
    """What each of them needs is imported when it runs."""
    if arguments.command == "node":
        from gateway.cli.node import run
    elif arguments.command == "durable":
        from gateway.cli.durable import run
    elif arguments.command == "queue":
        from gateway.cli.queue import run
    elif arguments.command == "acl":
        from gateway.cli.acl import run
    elif arguments.command == "decisions":
        from gateway.cli.decisions import run
    elif arguments.command == "audit":
        from gateway.cli.audit.command import run
    elif arguments.command == "trace":
        from gateway.cli.trace.command import run
    elif arguments.command == "what-if":
        from gateway.cli import what_if

        return what_if.run(arguments, settings)
    elif arguments.command == "replay":
        from gateway.cli.explain_record import run
    else:
        return _serve(arguments, settings)
    return run(arguments, settings, sys.stdout)


def _serve(arguments: argparse.Namespace, settings: Settings) -> int:
    from gateway.cli.configuration.search import is_own
    from gateway.serve.package_clash import mixed
    from gateway.serve.serve import serve

    if words := mixed():
        sys.stderr.write(f"realmgate: warning: {words}\n")
    if is_own(arguments.config):
        sys.stderr.write(f"realmgate: messages are kept in {settings.realm.place}\n")
    return serve(settings)


def _peers(arguments: argparse.Namespace) -> int:
    """Commands that ask serving gateways: by `--gateway`, or where the configuration says that they answer."""
    from gateway.cli.gateways import history, problems, top
    from gateway.cli.gateways import peers as peer_commands
    from gateway.cli.gateways.admin_client import AdminProblem
    from gateway.config.settings import SettingsProblems, load_settings

    others = {"top": top.run, "problems": problems.run, "history": history.run}
    run_command = others.get(arguments.command, peer_commands.run)
    try:
        settings = load_settings(arguments.config) if arguments.config is not None else None
        return _reported(settings, lambda: run_command(arguments, settings, sys.stdout))
    except SettingsProblems as error:
        return _tell(error.problems)
    except AdminProblem as error:
        return _tell([f"realmgate: {error}"])


def _client(arguments: argparse.Namespace) -> int:
    """Commands that speak AMQP."""
    from gateway.cli.client import command as client_command
    from gateway.cli.drain import command as drain_command

    run_command = drain_command.run if arguments.command == "drain" else client_command.run
    return _reported(None, lambda: run_command(arguments, sys.stdout))


def _by_itself(arguments: argparse.Namespace) -> int:
    """Commands that read their own configuration, or none."""
    if arguments.command == "config":
        from gateway.cli.configuration.command import run
    elif arguments.command == "user":
        from gateway.cli.user import run
    elif arguments.command == "doctor":
        from gateway.cli.doctor.command import run
    else:
        from gateway.cli.imports.command import run
    return run(arguments, sys.stdout)


_COMMANDS = {
    **dict.fromkeys(("config", "user", "doctor", "import"), _by_itself),
    **dict.fromkeys(("send", "receive", "drain"), _client),
    **dict.fromkeys(("connections", "links", "connection", "errors", "denials", "problems", "top", "history"), _peers),
}


def _tell(problems: Sequence[object]) -> int:
    sys.stderr.write("".join(f"{problem}\n" for problem in problems))
    return COULD_NOT_RUN


def _mappings(argv: list[str]) -> int:
    if argv[:1] == ["explain"] and any(word.startswith("--record") for word in argv):
        from gateway.cli.configuration.search import find_configuration
        from gateway.cli.explain_record import record_arguments

        arguments = record_arguments(argv[1:])
        find_configuration(arguments)
        return _configured(arguments)
    from mappings.tools.commands import main as commands_main
    from transformers.events.installed import complaint_about

    return commands_main(argv, sys.stdout, complaint_about)


_WITHOUT_A_REALM = ("--fetch-jars", "--history", "--acknowledge")
"""Words of `reconcile` with which it reads no realm."""


def _reconcile(argv: list[str]) -> NoReturn:
    from gateway.cli.configuration.search import with_configuration

    reads_none = any(word.partition("=")[0] in _WITHOUT_A_REALM for word in argv)
    _become("reconciliation", argv if reads_none else with_configuration(argv))


def _console(argv: list[str]) -> NoReturn:
    from gateway.cli.configuration.search import with_configuration

    names_gateways = any(word.partition("=")[0] == "--gateway" for word in argv)  # then no configuration is needed
    _become("console", argv if names_gateways else with_configuration(argv))


def _become(package: str, argv: list[str]) -> NoReturn:
    """Become its process: its exit code, and the signals it is sent, are its own. -P: the installed package, not what
    lies in the directory we happen to be in."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", package, *argv])  # noqa: S606


_PASSED = {"console": _console, "mappings": _mappings, "reconcile": _reconcile}
"""These read their own arguments."""


if __name__ == "__main__":
    main()
