"""A stand-in for a server of a language model, on a unix socket, as hostile as a test likes."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mmedge_ros.questions.model_client import Endpoint

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


def failed(status: str, body: bytes = b'') -> bytes:
    return f'HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n'.encode() + body


Serve = Callable[[socket.socket, threading.Event], None]


@contextmanager
def short_folder() -> Iterator[Path]:
    """Make a folder whose name is short enough for sockets, and remove it in the end."""
    folder = Path(tempfile.mkdtemp(prefix='m', dir='/tmp'))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


class Scripts:
    """Serves a script to each connection, the last one over and over.

    Bytes are sent, and numbers are seconds that it waits.
    """

    def __init__(self, *scripts: list[bytes | float]) -> None:
        self.requests: list[dict[str, Any]] = []
        self._scripts = list(scripts)

    def __call__(self, connection: socket.socket, ended: threading.Event) -> None:
        request = b''
        while not request.endswith(b'}'):
            received = connection.recv(1 << 16)
            if not received:
                return
            request += received
        self.requests.append(json.loads(request.partition(b'\r\n\r\n')[2]))
        script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
        for step in script:
            if isinstance(step, bytes):
                connection.sendall(step)
            elif ended.wait(step):
                return
