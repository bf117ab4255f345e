"""Free ports for the servers that tests start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port of this machine nobody listens on at the moment."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
