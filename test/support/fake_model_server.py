"""Stand-ins for a server of a language model: scripted connections, and one in a thread."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mmedge_ros.questions.model_client import Connection, Endpoint

HEAD = b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n'
STREAM = HEAD + b'Connection: close\r\n\r\n'
CHUNKED = HEAD + b'Transfer-Encoding: chunked\r\n\r\n'
DONE = b'data: [DONE]\n\n'


def event(text: str, **more: Any) -> bytes:
    """A part of an answer, as it is streamed."""
    content = {'choices': [{'index': 0, 'delta': {'content': text}}], **more}
    return b'data: ' + json.dumps(content).encode() + b'\n\n'


def chunk(content: bytes) -> bytes:
    return f'{len(content):x}\r\n'.encode() + content + b'\r\n'


def answered(answer: str, *tracks: int) -> bytes:
    return event(json.dumps({'answer': answer, 'tracks': tracks}))


def whole(kind: str, body: bytes) -> bytes:
    """An answer that is not streamed."""
    head = f'HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n'
    return head.encode() + body


def failed(status: str, body: bytes = b'') -> bytes:
    return f'HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body


class ScriptedServer:
    """Servers, one for each connection, that send bytes and wait (s) by a clock of their own.

    A script ends with the end of the connection; ``HANGS`` at its end never does.
    """

    HANGS = 1e9

    def __init__(self, *scripts: Sequence[bytes | float | OSError]) -> None:
        self.now = 0.0
        self.requests: list[dict[str, Any]] = []
        self.sent: list[bytes] = []
        self.closed = 0
        self._scripts = [list(script) for script in scripts]

    def monotonic(self) -> float:
        return self.now

    def connect(self, seconds: float) -> Connection:
        return _ScriptedConnection(self, self._scripts.pop(0), seconds)


class _ScriptedConnection:
    def __init__(
        self, server: ScriptedServer, script: list[bytes | float | OSError], seconds: float
    ) -> None:
        self._server, self._script, self._timeout = server, script, seconds

    def settimeout(self, seconds: float | None, /) -> None:
        assert seconds is not None
        self._timeout = seconds

    def sendall(self, content: bytes, /) -> None:
        head, _, body = content.partition(b'\r\n\r\n')
        self._server.sent.append(content)
        if b'Content-Type: application/json' in head:
            self._server.requests.append(json.loads(body))

    def recv(self, most: int, /) -> bytes:
        while self._script:
            step = self._script.pop(0)
            if isinstance(step, OSError):
                raise step
            if isinstance(step, bytes):
                # Slicing what is left over and over would take the time of the test.
                self._script[:0] = [step[at : at + most] for at in range(most, len(step), most)]
                return step[:most]
            passed = min(step, self._timeout)
            self._server.now += passed
            if passed < step:
                self._script.insert(0, step - passed)
                raise TimeoutError
        return b''

    def close(self) -> None:
        self._server.closed += 1


Serve = Callable[[socket.socket, threading.Event], None]


@contextmanager
def listening(folder: Path, serve: Serve) -> Iterator[Endpoint]:
    """A server on a unix socket that treats each connection as it likes; ended with the block."""
    ended = threading.Event()
    path = str(folder / 'fake.sock')
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def run() -> None:
            with suppress(OSError):
                while not ended.is_set():
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        serve(connection, ended)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield Endpoint(socket=path)
        finally:
            ended.set()
            with suppress(OSError), socket.socket(socket.AF_UNIX) as last:
                last.connect(path)
            thread.join()
