"""In which ways a gateway is open to other machines: each is allowed, and each gives a warning.

The warnings are in the log at the start, and in `/health` as long as they hold.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import cache
from ipaddress import ip_address

from gateway.auth.users import IN_THE_CLEAR
from gateway.config.settings import Listen, Settings


def exposures(settings: Settings, has_grants: bool) -> Iterator[str]:
    """One line for each: what is open, and what to write so that it is not. `has_grants`: the realm has grants of its
    own, which hold for every node."""
    security, admin = settings.security, settings.admin
    reached = [address for address in settings.listen if reaches_beyond_loopback(address.host)]
    for listen in reached:
        if _needs_no_login(settings, listen):
            how = "sasl offers ANONYMOUS" if "ANONYMOUS" in security.sasl else "bare_amqp is true"
            remedy = "write security.sasl: [SCRAM-SHA-256] and users, bare_amqp: false, or listen on 127.0.0.1"
            yield f"{listen.url}: a peer needs no user name and no password ({how}): {remedy}"
        in_the_clear = [name for name in security.offered(listen.secure) if name in IN_THE_CLEAR]
        if in_the_clear and not listen.secure:
            remedy = "listen at amqps://, or remove plain_without_tls"
            yield f"{listen.url}: {in_the_clear[0]} sends passwords in clear text over the network: {remedy}"
    if reached and not has_grants and not security.kafka_acls:
        remedy = "realmgate acl grant user:NAME manage (and so on) grants rights to named users"
        yield f"{reached[0].url}: the realm has no grants, so every user may do everything: {remedy}"
    if admin is not None and not settings.admin_guarded and reaches_beyond_loopback(admin.host):
        remedy = "write admin: {listen: http://127.0.0.1:PORT}, or keep others away from it and write guarded: true"
        yield f"{admin.url}: anyone who can connect can read health and metrics without a password: {remedy}"


def _needs_no_login(settings: Settings, listen: Listen) -> bool:
    security, tls = settings.security, settings.tls
    if listen.secure and tls is not None and tls.require_client_certificate:
        return False  # a peer without a certificate does not get this far
    return security.bare_amqp or "ANONYMOUS" in security.offered(listen.secure)


@cache
def reaches_beyond_loopback(host: str) -> bool:
    """Whether other machines can connect to what listens there. A name that cannot be resolved counts as reachable."""
    try:
        return not ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        pass
    try:
        addresses = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return True
    return not all(ip_address(str(address[0]).partition("%")[0]).is_loopback for *_, address in addresses)
