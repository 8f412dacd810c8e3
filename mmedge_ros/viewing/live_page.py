"""The live page: a web server for this machine alone, which works only while somebody looks.

Nothing is queued. Each browser is served by a thread of its own that waits for something newer
than it has sent and sends the newest there is; one that stalls is dropped after a few seconds.
The picture is drawn and encoded when the first browser requests it, once for all of them.
"""

from __future__ import annotations

import errno
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import cv2

from mmedge_ros.viewing import ViewingError
from mmedge_ros.viewing.drawing import Picture

HOST = '127.0.0.1'
DEFAULT_PORT = 8080
_PORTS_TRIED = 20
_JPEG_QUALITY = 75
# A browser that takes nothing for so long is dropped, s.
_PATIENCE = 5.0
_HEARTBEAT = 1.0
# How often the server looks whether it is to close, s.
_LOOK = 0.5
_MOST_CONNECTIONS = 32
# What may wait in the system for a slow browser, bytes: it shows what is new, not what it missed.
_SEND_BUFFER = 1 << 16
_PAGE = Path(__file__).parent / 'page'
Listening = TypeVar('Listening')
_FILES = {
    '/': ('page.html', 'text/html; charset=utf-8'),
    '/page.css': ('page.css', 'text/css; charset=utf-8'),
    '/page.js': ('page.js', 'text/javascript; charset=utf-8'),
    '/scene.js': ('scene.js', 'text/javascript; charset=utf-8'),
}
# Other pages in the same browser must not read what the camera sees, nor may another name lead
# here (DNS rebinding). Through a tunnel the name is that of the tunnel's near end.
_OWN_NAMES = ('127.0.0.1', 'localhost', '[::1]')
_OWN_SITES = ('same-origin', 'none')
_HEADERS = {
    'Cache-Control': 'no-store',
    'Content-Security-Policy': "default-src 'self'; img-src 'self' data:",
    'Cross-Origin-Resource-Policy': 'same-origin',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
}


def free_port(port: int = DEFAULT_PORT) -> int:
    """Return the first port from ``port`` on at which the page could be.

    :raises ViewingError: when none is free
    """
    with _at_free_port(port, lambda number: socket.create_server((HOST, number))) as probe:
        return int(probe.getsockname()[1])


class _Newest:
    """The newest of something, with a number; others wait until there is a newer one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._value: Any = None
        self.number = 0

    def set(self, value: Any) -> None:
        with self._changed:
            self._value = value
            self.number += 1
            self._changed.notify_all()

    def after(self, number: int, patience: float) -> tuple[int, Any]:
        """Return number and value of a newer one, or the present one after ``patience`` s."""
        with self._changed:
            self._changed.wait_for(lambda: self.number != number, patience)
            return self.number, self._value


class LivePage:
    """Serves the page at 127.0.0.1 until it is closed.

    :param port: the first one tried; a taken one is passed over
    :raises ViewingError: when no port is free
    """

    def __init__(self, port: int = DEFAULT_PORT) -> None:
        self._state = _Newest()
        self._picture = _Newest()
        self._encoding = threading.Lock()
        self._encoded: tuple[int, bytes] = (0, b'')
        self._count = 0
        self.is_open = True
        self._counting = threading.Lock()
        self._server = _at_free_port(port, lambda number: _Server(number, self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={'poll_interval': _LOOK}, daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        return f'http://{HOST}:{self.port}'

    @property
    def watchers(self) -> int:
        """How many browsers look at the page; one whose tab is hidden does not."""
        return self._count

    def update(self, snapshot: Mapping[str, Any]) -> None:
        """Send a snapshot of a `LiveScene` to those that look."""
        text = json.dumps(snapshot, separators=(',', ':'), allow_nan=False)
        self._state.set(f'data: {text}\n\n'.encode())

    def show(self, draw: Callable[[], Picture | None]) -> None:
        """Offer a picture; ``draw`` is called, in another thread, if it is requested.

        :param draw: returns (H, W, 3) uint8 BGR, None for one that cannot be drawn
        """
        self._picture.set(draw)

    def close(self) -> None:
        """Stop serving."""
        self.is_open = False
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(_PATIENCE)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count a browser."""
        with self._counting:
            self._count += 1
        try:
            yield
        finally:
            with self._counting:
                self._count -= 1

    def newer_state(self, number: int) -> tuple[int, bytes]:
        """Return the number and bytes of a newer state; empty ones where none came for a while."""
        newest, text = self._state.after(number, _HEARTBEAT)
        return newest, text if newest != number and text is not None else b': no news\n\n'

    def newer_picture(self, number: int) -> tuple[int, bytes]:
        """Return the number and JPEG of a newer picture; no bytes where none came for a while."""
        newest, draw = self._picture.after(number, _HEARTBEAT)
        if newest == number or draw is None:
            return number, b''
        with self._encoding:
            if self._encoded[0] < newest:
                self._encoded = (newest, _jpeg(draw()))
            return self._encoded


def _jpeg(picture: Picture | None) -> bytes:
    if picture is None or not picture.size:
        return b''
    done, data = cv2.imencode('.jpg', picture, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
    return data.tobytes() if done else b''


class _Server(ThreadingHTTPServer):
    """A thread for each connection, and not too many of them."""

    daemon_threads = True
    block_on_close = False
    # Where few may wait to be refused, the others are silent for seconds.
    request_queue_size = 128

    def __init__(self, port: int, page: LivePage) -> None:
        self.page = page
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        super().__init__((HOST, port), _Handler)

    def server_bind(self) -> None:
        """Bind without looking up the machine's name, which can take long without a network."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong; a browser that goes away in the middle of an answer is no error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _at_free_port(port: int, listen: Callable[[int], Listening]) -> Listening:
    """Return what listens at the first port, from ``port`` on, at which it can."""
    last = min(port + _PORTS_TRIED, 65536) - 1
    for number in range(port, last + 1):
        try:
            return listen(number)
        except OSError as err:
            if err.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise ViewingError(
                    f'the live view cannot listen on {HOST}:{number}: {err.strerror}; name '
                    'another port'
                ) from err
    raise ViewingError(
        f'the live view has no free port from {port} to {last}; stop what listens there or name '
        'another port (parameter port of the node viewer)'
    )


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = 'HTTP/1.1'
    server_version = 'mmedge'
    sys_version = ''
    timeout = _PATIENCE
    server: _Server

    def handle_one_request(self) -> None:
        """Take a request, all of it within the patience: drop by drop it would hold a place."""
        self._hurry = threading.Timer(self.timeout, self._hang_up)
        self._hurry.daemon = True
        self._hurry.start()
        try:
            super().handle_one_request()
        finally:
            self._hurry.cancel()

    def _hang_up(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        """Send the page, a stream of states, or a picture."""
        self._hurry.cancel()
        if not self._is_own():
            self.send_error(
                HTTPStatus.FORBIDDEN, explain='Open the page itself, by 127.0.0.1 or localhost.'
            )
            return
        try:
            url = urlsplit(self.path)
        except ValueError:
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        if url.path in _FILES:
            name, kind = _FILES[url.path]
            self._answer((_PAGE / name).read_bytes(), kind)
        elif url.path == '/states':
            self._stream_states()
        elif url.path == '/picture':
            after = parse_qs(url.query).get('after', [''])[0]
            self._send_picture(int(after) if after.isdecimal() and len(after) < 16 else 0)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the base's name
        """Say nothing: the log is for the node."""

    def _is_own(self) -> bool:
        host = self.headers.get('Host', '').rpartition(':')
        name = host[0] if host[2].isdecimal() else ''.join(host)
        site = self.headers.get('Sec-Fetch-Site', 'none')
        # Following a link to the page is no harm; reading from another page would be.
        follows_link = self.headers.get('Sec-Fetch-Mode') == 'navigate'
        return name in _OWN_NAMES and (site in _OWN_SITES or follows_link)

    def _begin(self, status: HTTPStatus, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, **headers}.items():
            self.send_header(name.replace('_', '-'), value)
        self.end_headers()

    def _answer(self, body: bytes, kind: str, **headers: str) -> None:
        status = HTTPStatus.OK if body else HTTPStatus.NO_CONTENT
        self._begin(status, Content_Type=kind, Content_Length=str(len(body)), **headers)
        self.wfile.write(body)

    def _send_picture(self, after: int) -> None:
        number, data = self.server.page.newer_picture(after)
        self._answer(data, 'image/jpeg', Picture_Number=str(number))

    def _stream_states(self) -> None:
        """Send states as server-sent events until the browser goes away."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self._begin(HTTPStatus.OK, Content_Type='text/event-stream', Connection='close')
        number = 0
        with self.server.page.watching(), suppress(OSError):
            self.wfile.write(b'retry: 1000\n\n')
            while self.server.page.is_open:
                number, data = self.server.page.newer_state(number)
                self.wfile.write(data)
