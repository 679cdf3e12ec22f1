"""The socket that an HTTP server of ours listens at: the admin pages of a gateway, and the console."""

from __future__ import annotations

import socket


def listening_socket(host: str, port: int, backlog: int, url: str) -> socket.socket:
    """Port 0 picks a free one. Raises OSError, which names `url`."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(backlog)
    except OSError as error:
        opened.close()
        raise OSError(error.errno, error.strerror, url) from error
    return opened
