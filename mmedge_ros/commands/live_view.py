"""`--view`: where the live page is, said once it answers, and opened on a desktop."""

from __future__ import annotations

import os
import socket
import threading
import time
import webbrowser
from typing import Annotated

from mmedge_ros.commands.display import say
from mmedge_ros.commands.options import LIVE, flag

ViewOption = Annotated[
    bool,
    flag(
        '--view', 'show pictures, tracks and latency live in the browser, at 127.0.0.1 alone', LIVE
    ),
]

_HOST = '127.0.0.1'
_PATIENCE = 120.0
_LOOK = 0.3


def open_view(wanted: bool) -> int:
    """Return the port for the live page, 0 where none is wanted; it is opened once it answers.

    :raises ViewingError: when no port is free
    """
    if not wanted:
        return 0
    from mmedge_ros.viewing.live_page import free_port

    port = free_port()
    threading.Thread(target=_announce, args=(port,), daemon=True).start()
    return port


def on_desktop() -> bool:
    """Whether a browser started here would be seen by the person who types."""
    environment = os.environ
    shows = environment.get('DISPLAY') or environment.get('WAYLAND_DISPLAY')
    return bool(shows) and 'SSH_CONNECTION' not in environment


def _announce(port: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not _answers(port):
        if time.monotonic() > deadline:
            return
        time.sleep(_LOOK)
    address = f'http://{_HOST}:{port}'
    if on_desktop():
        say(f'live view: {address} (opening the browser)')
        webbrowser.open(address)
    else:
        say(f'live view: {address}')
        say(f'on another machine: ssh -L {port}:{_HOST}:{port} {socket.gethostname()}')


def _answers(port: int) -> bool:
    try:
        socket.create_connection((_HOST, port), 1.0).close()
    except OSError:
        return False
    return True
