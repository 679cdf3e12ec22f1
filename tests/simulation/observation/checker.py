"""What a checker is: it sees what crosses the gateway's boundary, and looks at the disk when all is over.

Every method of a checker is called for every fact; a checker overrides those it cares about. `fail` ends the world.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.observation.facts import Given, Publish, Transaction, WireLink

if TYPE_CHECKING:
    from tests.simulation.world import World


class Violation(AssertionError):
    """A checker found what must not be; the text names it, the seed and what happened last."""

    def __init__(self, checker: str, what: str) -> None:
        super().__init__(f"{checker}: {what}")
        self.checker = checker
        self.what = what


class Checker:
    """One invariant. The class's name is its name, the docstring what must hold."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ledger = world.ledger

    def fail(self, what: str) -> None:
        raise Violation(type(self).__name__, what)

    def require(self, condition: bool, what: str) -> None:
        if not condition:
            self.fail(what)

    def attached(self, link: WireLink) -> None: ...
    def published(self, publish: Publish) -> None: ...
    def told(self, publish: Publish, state: str) -> None: ...
    def granted(self, link: WireLink) -> None: ...
    def given(self, given: Given) -> None: ...
    def stated(self, given: Given, state: str) -> None: ...
    def contradicted(self, given: Given) -> None: ...
    def echoed(self, given: Given, state: str) -> None: ...
    def detached(self, link: WireLink) -> None: ...
    def declared(self, transaction: Transaction) -> None: ...
    def promised(self, publish: Publish) -> None: ...
    def discharged(self, transaction: Transaction) -> None: ...
    def answered(self, transaction: Transaction) -> None: ...

    def flushed(self) -> None:
        """The gateway has said on every connection what it had to say."""

    def at_quiet(self) -> None:
        """The faults are over, and time has passed: whatever a peer sent is dealt with."""

    def at_rest(self) -> None:
        """Everybody has what he wanted; the gateway still runs."""

    def at_end(self) -> None:
        """The gateway has stopped in order; only the disk is left."""
