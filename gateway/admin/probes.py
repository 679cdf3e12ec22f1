"""`/livez` and `/readyz`, for what starts processes anew and for what sends clients to them. JSON; 200 or 503.

| | 200 | 503 |
|---|---|---|
| `/livez` | it takes turns; while its realm is opened: it answers | its last turn is too old: a restart may help |
| `/readyz` | `ready`, `degraded`, or `standby` beside an owner | everything else: a restart does not help |

A process whose loop hangs answers neither. Seconds.
"""

from __future__ import annotations

from gateway.admin.health import answered, is_ready, state_of
from gateway.admin.http import Response
from gateway.admin.problems import problems
from gateway.admin.watched import Watched
from gateway.config.limits import TURN_AGE_MAX_S


def live(watched: Watched) -> Response:
    """Of a gateway whose realm is open."""
    gateway = watched.gateway
    age_s = gateway.clock.monotonic_s() - gateway.turned_s
    return answered(age_s <= TURN_AGE_MAX_S, run=gateway.realm.run, last_turn_s=round(age_s, 3))


def ready(watched: Watched) -> Response:
    """The same."""
    gateway = watched.gateway
    state = state_of(gateway, problems(watched))
    return answered(is_ready(state), run=gateway.realm.run, state=state)


def waiting_live(state: str, run: str) -> Response:
    """Of one that waits for its realm: it waits on a thread of its own, which answers this."""
    return answered(True, run=run, state=state)


def waiting_ready(state: str, words: str, run: str) -> Response:
    """The same. A standby is as it should be, though it does not listen."""
    return answered(state == "standby", run=run, state=state, detail=words)
