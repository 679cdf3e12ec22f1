"""What a page is made from, and the frame that every document has: which gateways were asked, how old their answers
are, what is wrong at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from console.facts.errors import Shown
from console.facts.gateway import Gateway
from console.facts.history import NOTHING_READ, History
from console.facts.letters import NOT_READ, Stored
from console.facts.realm import known_from_us
from console.facts.rises import MINUTE_US
from console.facts.rules import Tables
from console.limits import LOOKED_S, PROBLEMS_LISTED, PROBLEMS_SHOWN
from console.pages.words import clock, iso
from gateway.verdict.problem import Problem
from gateway.verdict.problems import problems
from gateway.verdict.reports import Report
from gateway.verdict.standing import WAITS

Document = dict[str, Any]
WINDOWS: Final = (5, 15, 30, 60)
WINDOW: Final = 30
STALE_S: Final = 60.0


@dataclass(slots=True)
class View:
    """`query`: the parameters of the request; `tables` None: not loaded yet; `user`: who has logged in; `stored`:
    what was read of the realm itself; `history`: of the time asked for; `acts`: the console takes actions."""

    gateways: Sequence[Gateway]
    reports: Sequence[Report]
    tables: Tables | None
    now_us: int
    query: Mapping[str, str]
    realm: str = ""
    has_reports: bool = False
    user: str = ""
    stored: Stored = NOT_READ
    history: History = NOTHING_READ
    acts: bool = False
    problems: list[Problem] = field(init=False)

    def __post_init__(self) -> None:
        self.problems = problems(self.gateways, self.reports, self.now_us)

    @property
    def shown(self) -> Shown:
        """What is asked for; of what there is not, the first choice."""
        minutes, gateway = self.query.get("window", ""), self.query.get("gateway", "")
        window = int(minutes) if minutes in map(str, WINDOWS) else WINDOW
        return Shown(self.now_us, window, gateway if gateway in {server.name for server in self.gateways} else "")

    def age_s(self, at_us: float) -> float | None:
        return max(0.0, (self.now_us - at_us) / 1e6) if at_us else None


def frame(view: View, name: str, title: str, question: str, **content: Any) -> Document:
    """A whole document. `at`: when it was made; each gateway says how old its part is."""
    shown = view.shown
    begin_us = view.now_us - shown.minutes * MINUTE_US
    known_us = known_from_us(view.gateways, shown)
    return {
        "page": name,
        "title": title,
        "question": question,
        "at": iso(view.now_us),
        "at_us": view.now_us,
        "realm": _realm(view),
        "user": view.user,
        "acts": view.acts,
        "window_minutes": shown.minutes,
        "from": iso(begin_us),
        "counted_from": iso(max(known_us, begin_us)),
        "counted": f"since {clock(known_us, view.now_us)}"
        if known_us > begin_us + MINUTE_US
        else f"{shown.minutes} min",
        "gateway": shown.gateway,
        "gateways": [gateway_row(view, gateway) for gateway in view.gateways],
        "silent": [gateway.name for gateway in view.gateways if gateway.failed_us],
        "open": open_problems(view),
        "tables": _tables(view),
        "reconciliation": _last_report(view),
        **content,
    }


def _realm(view: View) -> Document:
    kinds = sorted({str(gateway.health["realm"]) for gateway in view.gateways if gateway.health.get("realm")})
    return {"name": view.realm, "kind": ", ".join(kinds) or "unknown"}


def gateway_row(view: View, gateway: Gateway) -> Document:
    """How one gateway is. `age_s` None: it has never answered."""
    age_s = view.age_s(gateway.answered_us)
    return {
        "name": gateway.name,
        "url": gateway.url,
        "state": gateway.state,
        "class": state_class(gateway),
        "run": gateway.run,
        "answers": gateway.answers,
        "answered_at": iso(gateway.answered_us),
        "age_s": None if age_s is None else round(age_s, 1),
        "is_old": age_s is None or age_s > LOOKED_S,
        "is_stale": age_s is None or age_s > STALE_S,
        "silent_since": iso(gateway.failed_us),
        "problem": gateway.problem,
    }


def state_class(gateway: Gateway) -> str:
    if gateway.failed_us:
        return "fatal"
    if not gateway.answered_us:
        return "off"
    return {"ready": "fine", "degraded": "transient"}.get(gateway.state, "off" if gateway.state in WAITS else "fatal")


def open_problems(view: View) -> Document:
    """How many, which pages they belong to, and the first ones; with `problems=all` many more."""
    shown = PROBLEMS_LISTED if view.query.get("problems") == "all" else PROBLEMS_SHOWN
    by_page = Counter(problem.page for problem in view.problems)
    fatal = {problem.page for problem in view.problems if problem.klass == "fatal"}
    return {
        "count": len(view.problems),
        "by_class": dict(Counter(problem.klass for problem in view.problems)),
        "by_page": {page: {"count": count, "fatal": page in fatal} for page, count in by_page.items()},
        "first": [problem_row(view, problem) for problem in view.problems[:shown]],
    }


def problem_row(view: View, problem: Problem) -> Document:
    return {
        **problem.document(),
        "since": iso(problem.since_us),
        "since_clock": clock(problem.since_us, view.now_us) if problem.since_us else "",
        "for_s": view.age_s(problem.since_us),
    }


def _tables(view: View) -> Document:
    digests = sorted({str(gateway.health["digest"]) for gateway in view.gateways if gateway.health.get("digest")})
    profiles = sorted({str(gateway.health["profile"]) for gateway in view.gateways if gateway.health.get("profile")})
    return {"digests": digests, "profiles": profiles, "agree": len(digests) <= 1}


def _last_report(view: View) -> Document | None:
    if not view.reports or not view.reports[0].at_us:
        return None  # what cannot be read is a problem, and no verdict
    last = view.reports[0]
    return {"verdict": last.verdict, "at": iso(last.at_us), "age_s": view.age_s(last.at_us), "sentence": last.sentence,
            "acknowledged": last.acknowledged, "since": last.since}  # fmt: skip
