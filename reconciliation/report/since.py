"""What is new since the reconciliation before, in words. What stays is counted, never left unsaid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciliation.history.cause import Cause
from reconciliation.history.compared import Change, Comparison
from reconciliation.model.classes import CLASSES
from reconciliation.model.window import readable

SHOWN = 20


def heading(since: Comparison) -> str:
    """One sentence, with all counts."""
    if since.before is None:
        return f"No earlier reconciliation to compare with: {_findings(len(since.new))} new."
    said = f"the reconciliation of {readable(since.before.at_us)} ({since.before.verdict})"
    return f"Since {said}: {counts_words(since)}."


def counts_words(since: Comparison) -> str:
    counts = since.counts
    words = [f"{counts['new']:,} new", f"{counts['grown']:,} grown", f"{counts['same']:,} the same"]
    words += [f"{counts['reopened']:,} not acknowledged any more"] if counts["reopened"] else []
    return ", ".join([*words, f"{counts['gone']:,} gone"])


def write(since: Comparison, damaged: Sequence[str] = (), shown: int = SHOWN) -> str:
    """The heading, then each finding that is new or has grown; the rest by its number."""
    lines = [*damaged, heading(since)]
    lines += _changes("new", since.new, shown)
    lines += _changes("grown", since.grown, shown)
    lines += _changes("not acknowledged any more", since.reopened, shown)
    lines += [f"  books new or otherwise  {line}" for line in since.books[:shown]]
    if since.same:
        of = messages(sum(one.count for one in since.same))
        lines.append(f"  {_findings(len(since.same))} the same as before: {of}, not named here.")
    if since.gone:
        lines.append(f"  Gone: {_some(since.gone, shown)}.")
    return "\n".join(lines) + "\n"


def exit_words(since: Comparison, verdict: str) -> str:
    """What `--since-last` makes of it."""
    if since.is_news:
        return "Exit code 1: something is new that is not acknowledged."
    stays = "" if verdict == "clean" else f"; the verdict is {verdict} all the same"
    return f"Exit code 0: nothing is new since the reconciliation before{stays}."


def _changes(word: str, changes: Sequence[Change], shown: int) -> Iterator[str]:
    for one in changes[:shown]:
        yield f"  {word}  {named(one.cause)}{change_words(one)}"
    if len(changes) > shown:
        yield f"  {word}  and {_findings(len(changes) - shown)} more"


def change_words(one: Change) -> str:
    """How much of it is new, or counts again."""
    words = ""
    if one.more < one.cause.count:
        words += f"; {one.more:,} more than before" if one.more else ""
        words += f"; {one.reopened:,} were acknowledged before" if one.reopened else ""
    if one.counts < one.more + one.reopened:
        words += f"; {one.more + one.reopened - one.counts:,} of them acknowledged"
    return words


def named(cause: Cause) -> str:
    """A finding in a line: its name, where it is, of how many messages, and what is said."""
    example = cause.examples[0]["detail"] if cause.examples else cause.words
    place = f" in {cause.place}" if cause.place else ""
    return f"{cause.id} {CLASSES[cause.code].name}{place}, {messages(cause.count)}: {example}"


def messages(count: int) -> str:
    return f"{count:,} message{'s' if count != 1 else ''}"


def _findings(count: int) -> str:
    return f"{count:,} finding{'s' if count != 1 else ''}"


def _some(causes: Sequence[Cause], shown: int) -> str:
    more = f" and {len(causes) - shown} more" if len(causes) > shown else ""
    return ", ".join(one.id for one in causes[:shown]) + more
