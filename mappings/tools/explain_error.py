"""What a native error means, and which error a peer gets for it, moment by moment, with the rules that decide:
`explain code=_MSG_TIMED_OUT [moment=publish] [realm=kafka]`.

Errors: `UnknownFact` for a word that is not known, with the likeliest one that is.
"""

from __future__ import annotations

from mappings.compiler.errors import LOGS, WAITED, Errors, Saying
from mappings.compiler.table_set import TableSet
from mappings.language.causes import MOMENTS, TABLES_OF
from mappings.language.rules import RuleBook
from mappings.language.vocabulary import PROFILES
from mappings.tools.error_table import TABLE, ErrorLine, error_lines
from mappings.tools.expand import write_then
from mappings.tools.facts import UnknownFact, known

_WORDS = ("code", "moment", "realm", "profile")


def asks_of_an_error(words: list[str]) -> bool:
    """Is it a code that is asked about? No table has an axis of that name."""
    return words[:1] == [TABLE] or any(word.startswith("code=") for word in words)


def read_error_question(words: list[str], errors: Errors) -> dict[str, str]:
    """The words as pairs; SQLite's extended codes are those of their first two words."""
    given: dict[str, str] = {}
    for word in words[words[:1] == [TABLE] :]:
        key, equals, value = word.partition("=")
        known("fact", key, _WORDS)
        if not equals or key in given:
            raise UnknownFact(f"{word} is not {key}=VALUE, or stands twice; write {key}=... once")
        given[key] = value
    for key, values in (("moment", MOMENTS), ("realm", LOGS), ("profile", PROFILES)):
        if key in given:
            known(key, given[key], values)
    codes = [code for log in LOGS for code in errors.codes[log]]
    primary = "_".join(given.get("code", "").split("_")[:2])
    if given.get("code") not in codes and primary in errors.codes["sqlite"]:
        given["code"] = primary
    known("code", given.get("code", ""), codes)
    return given


def explain_error(errors: Errors, rules: RuleBook, tables: TableSet, question: dict[str, str]) -> list[str]:
    """Lines of text."""
    code = question["code"]
    lines_of_code = [
        line
        for line in error_lines(errors, tables, code)
        if line.moment == question.get("moment", line.moment) and line.realm == question.get("realm", line.realm)
    ]
    if not lines_of_code:
        raise UnknownFact(f"{code} is no code of realm {question.get('realm')}; leave realm out")
    error = lines_of_code[0].error
    waits = "" if error.retry_after_ms is None else f"; a peer is advised to wait {error.retry_after_ms} ms"
    lines = [
        f"code {code} of realm {lines_of_code[0].realm}, profile {tables.profile}",
        f"error {error.id} (errors.yaml)",
        f"  cause    {error.cause}",
        f"  scope    {error.scope}",
        f"  retry    {error.retry}{waits}",
        *_sentences(error.say),
        f"  because  {error.because}",
    ]
    for line in lines_of_code:
        lines += _moment(line, rules, tables.profile)
    return lines


def _sentences(say: Saying) -> list[str]:
    if not say.at:
        return [f"  say      {say.usual}"]
    return [f"  say      {moment}: {text}" for moment, text in say.at if moment in WAITED]


def _moment(line: ErrorLine, rules: RuleBook, profile: str) -> list[str]:
    stage = "" if line.stage == "any" else f", {line.stage}"
    heading = f"moment {line.moment}{stage}: cause {line.cause}"
    if not line.rule:
        return [f"{heading}; no peer is answered: {line.answer.replace('-', ' ')}"]
    when = f", when {line.when}" if line.when else ""
    lines = [
        f"{heading}, answer {line.answer}{when}",
        f"  condition  {line.condition or 'none'}",
        f"  class      {line.error_class or 'none'}",
    ]
    written = {rule.id: rule for rule in rules[TABLES_OF[line.moment]].profiles[profile].rules}
    for name in line.rule.split(","):
        rule = written[name.partition(".")[2]]
        lines.append(f"  rule       {name} ({rule.place}): {write_then(rule.then)}")
    return lines
