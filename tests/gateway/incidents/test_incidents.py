"""The incidents that an embedded realm can have, all at once: `realmgate problems` and the console's overview name each
with node, peer, rule and remedy, and so do the commands that look at one kind of fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.gateway.incidents.causes import ON_ANY_REALM
from tests.gateway.incidents.commands import OF_THE_GATEWAY, OF_THE_REALM
from tests.gateway.incidents.site import Named, Site, opened_site
from tests.kit.patience import until
from tests.kit.processes.gateway import embedded_realm, realmgate


def until_all_are_named(look: Callable[[], list[str]], wanted: Mapping[str, Named]) -> None:
    missing = [*wanted]

    def are_named() -> bool:
        seen = look()
        missing[:] = [name for name in missing if not any(wanted[name].is_in(text) for text in seen)]
        return not missing

    try:
        until(are_named, "all of them")
    except AssertionError:
        raise AssertionError(f"not named: {missing}", look()) from None


def answers(command: str, place: tuple[str, str], words: tuple[str, ...]) -> bool:
    _, *texts = realmgate(*command.split(), *place)
    return all(word in "".join(texts) for word in words)


def until_each_command_names_its_own(site: Site) -> None:
    places = [(OF_THE_GATEWAY, ("--gateway", site.url)), (OF_THE_REALM, ("--config", str(site.gateway.config_path)))]
    for commands, place in places:
        for command, words in commands.items():
            until(partial(answers, command, place, words), f"{command}: {words}")


def test_one_command_and_one_page_name_each_incident(tmp_path: Path) -> None:
    with opened_site(tmp_path, embedded_realm(tmp_path)) as site, ExitStack() as causes:
        wanted = {name: causes.enter_context(cause(site)) for name, cause in ON_ANY_REALM.items()}
        until_all_are_named(site.command, wanted)
        until_all_are_named(site.page, wanted)
        until_each_command_names_its_own(site)
        assert "app:bad: cannot parse order 4711" in realmgate("problems", "--gateway", site.url)[1]
        page = site.console.words("/dead")
        assert all(text in page for text in ("app:bad: cannot parse order 4711", "rejecter", "queue resend dead"))
