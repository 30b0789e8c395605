"""A port for a server or a group of processes of a test."""

import socket


def free_port() -> int:
    """A port of this machine that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
