"""`realmgate user hash NAME`: an entry for the users file.

The password comes from the terminal (asked for twice, not shown) or is the one line of stdin; never an argument, which
every user of the machine can read. Exit codes: 0 done, 2 it cannot be used.
"""

from __future__ import annotations

import argparse
import getpass
import json
import sys
from typing import TextIO

from gateway.auth.passwords import hash_password
from gateway.auth.users import ITERATIONS, ITERATIONS_MAX, ITERATIONS_MIN, SCRAM, read_users
from mappings.language.yaml_lines import Problem, parse_document


def run(arguments: argparse.Namespace, out: TextIO) -> int:
    """Print the entry, as it has to stand in the file."""
    iterations = arguments.iterations or ITERATIONS
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        return _refuse(f"--iterations takes {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    password = _password()
    if not password:
        return _refuse("the password is empty, or was typed differently the second time")
    try:
        hashes = [hash_password(password, mechanism, iterations) for mechanism in SCRAM]
    except ValueError as error:
        return _refuse(str(error))
    entry = _entry(arguments.name, arguments.group, hashes)
    wrong: list[Problem] = []
    read_users(*parse_document(f"users:\n{entry}", "-"), wrong)  # what the gateway would say of it
    if wrong:
        return _refuse(wrong[0].message)
    out.write(entry)
    return 0


def _entry(name: str, groups: list[str], hashes: list[str]) -> str:
    quoted = ", ".join(json.dumps(group, ensure_ascii=False) for group in groups)
    lines = [f"  {json.dumps(name, ensure_ascii=False)}:", f"    groups: [{quoted}]", "    scram:"]
    return "".join(f"{line}\n" for line in lines + [f"      - {json.dumps(digest)}" for digest in hashes])


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    password = getpass.getpass("Password: ")
    return password if getpass.getpass("Once more: ") == password else ""


def _refuse(what: str) -> int:
    sys.stderr.write(f"realmgate: {what}\n")
    return 2
