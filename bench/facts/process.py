"""A gateway process without some of its facts: `python -m bench.facts.process FACTS serve --config CONFIG`.

FACTS: names of `recorded.FACTS` with commas between, whose recording is taken out; `none`: all is as it is.
"""

from __future__ import annotations

import logging
import sys

from bench.facts.cut import install
from bench.facts.recorded import FACTS, RECORDED
from gateway.cli.main import main


def take_out(words: str) -> None:
    """Raises LookupError where a name is none, or something that is to be taken out is not there."""
    names = set() if words == "none" else {*words.split(",")}
    if wrong := names - {*FACTS}:
        raise LookupError(f"no facts: {', '.join(sorted(wrong))}; there are {', '.join(FACTS)}")
    install(RECORDED)()  # both kinds of process have done the same work
    install([cut for cut in RECORDED if cut.fact in names])
    logging.getLogger("bench.facts").warning("facts that are not recorded: %s", words)


if __name__ == "__main__":
    take_out(sys.argv.pop(1))
    main()
