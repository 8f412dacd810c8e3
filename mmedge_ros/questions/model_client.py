"""Asks a language model behind an OpenAI-compatible endpoint, and is done by a deadline.

The endpoint is on this machine: HTTP on its loopback, or a unix socket. What it sends is
hostile: bytes are bounded, every wait ends at the deadline, and the answer must have the form
that was asked for, whether or not the server knows schemas.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from mmedge_ros.questions import QuestionError
from mmedge_ros.untrusted_files import brief

MOST_BYTES = 2 << 20
LONGEST_ANSWER = 600
MOST_TOKENS = 320
_LONGEST_EVENT = 1 << 16
_LONGEST_TEXT = 16 * LONGEST_ANSWER
_LONGEST_REASON = 200
_MOST_TRACKS = 20
_PATH = '/v1/chat/completions'
CANCELLED = 'the question was cancelled'
ResultT = TypeVar('ResultT')
# A wait looks this often (s) whether it is cancelled.
LOOK = 0.1
# What servers answer to a field that they do not know.
_NOT_UNDERSTOOD = (400, 404, 422, 501)

ANSWER_SCHEMA: Mapping[str, Any] = {
    'type': 'object',
    'properties': {
        'answer': {'type': 'string', 'maxLength': LONGEST_ANSWER},
        'tracks': {'type': 'array', 'items': {'type': 'integer'}, 'maxItems': _MOST_TRACKS},
    },
    'required': ['answer', 'tracks'],
    'additionalProperties': False,
}


class ModelError(QuestionError):
    """A model gave no answer; the message says in one sentence what happened."""


class Connection(Protocol):
    """What is needed of a socket."""

    def settimeout(self, seconds: float | None, /) -> None: ...

    def sendall(self, content: bytes, /) -> None: ...

    def recv(self, most: int, /) -> bytes: ...

    def close(self) -> None: ...


Connect = Callable[[float], Connection]


def never() -> bool:
    """Say that nothing is cancelled."""
    return False


@dataclass(frozen=True)
class Endpoint:
    """Where a model is asked: a unix ``socket``, or a ``port`` at a loopback address ``host``.

    ``path`` is that of chat completions, ``model`` the name of the one that is wanted.
    """

    socket: str = ''
    host: str = ''
    port: int = 0
    path: str = _PATH
    model: str = 'default'

    @property
    def words(self) -> str:
        return self.socket or f'{self.host}:{self.port}'

    def connect(self, seconds: float) -> Connection:
        """Connect within so long.

        :raises OSError: if that is not possible
        """
        family = socket.AF_UNIX if self.socket else socket.AF_INET
        if ':' in self.host:
            family = socket.AF_INET6
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(seconds)
            connection.connect(self.socket or (self.host, self.port))
        except OSError:
            connection.close()
            raise
        return connection


def read_endpoint(text: str, model: str = 'default') -> Endpoint:
    """Read ``http://127.0.0.1:8080``, with or without a path such as ``/v1``, or ``unix:/a/b``.

    :raises ModelError: for anything else, other machines among it: pictures show people
    """
    if text.startswith('unix:/'):
        return Endpoint(socket=text.removeprefix('unix:'), model=model)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or '', parts.port or 80
        # No name is looked up: that takes as long as it likes.
        host = '127.0.0.1' if host == 'localhost' else str(ipaddress.ip_address(host))
        is_here = parts.scheme == 'http' and ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = False
    path = parts.path.rstrip('/') if is_here else ''
    if not is_here or parts.query or not path.isascii() or not path.isprintable() or ' ' in path:
        raise ModelError(
            f'{text[:80]!r} is no endpoint of this machine; name one such as '
            'http://127.0.0.1:8080 or unix:/run/model.sock'
        )
    if not path.endswith('/chat/completions'):
        path = f'{path or "/v1"}/chat/completions'
    return Endpoint(host=host, port=port, path=path, model=model)


@dataclass(frozen=True)
class StreamedAnswer:
    """What a model answered, and the tracks that it names.

    ``first_token`` and ``seconds`` (s) count from the request; ``tokens`` as the server counts
    them, or parts of the stream where it does not.
    """

    text: str
    tracks: tuple[int, ...]
    first_token: float
    seconds: float
    tokens: int


def ask_endpoint(
    endpoint: Endpoint,
    messages: Sequence[Mapping[str, Any]],
    deadline: float,
    on_first_token: Callable[[], None] = lambda: None,
    *,
    bound: bool = True,
    most_tokens: int = MOST_TOKENS,
    monotonic: Callable[[], float] = time.monotonic,
    connect: Connect | None = None,
    is_cancelled: Callable[[], bool] = never,
) -> StreamedAnswer:
    """Ask a model, and cut it off at the deadline.

    :param messages: those of a chat, as OpenAI has them
    :param deadline: instant (s) of ``monotonic``
    :param bound: whether an answer has the form of `ANSWER_SCHEMA`; else any words are one
    :param connect: makes the connection within so many s; that of the endpoint if None
    :param is_cancelled: asked at least every tenth of a second
    :raises ModelError: if there is no such answer by then
    """
    request: dict[str, Any] = {
        'model': endpoint.model,
        'messages': list(messages),
        'stream': True,
        'temperature': 0.0,
        'max_tokens': most_tokens,
    }
    form = {'name': 'answer', 'strict': True, 'schema': ANSWER_SCHEMA}
    schema = {'response_format': {'type': 'json_schema', 'json_schema': form}}
    exchange = _Exchange(
        endpoint, deadline, on_first_token, bound, monotonic, connect, is_cancelled
    )
    if not bound:
        return exchange.answer(request)
    try:
        return exchange.answer({**request, **schema})
    except _RefusedError as refusal:
        if refusal.status not in _NOT_UNDERSTOOD:
            raise
        return exchange.answer(request)


@dataclass(frozen=True)
class Request:
    """What is posted: where, a ``body`` of a content type ``kind``, and the types of answers."""

    path: str
    kind: str
    accept: str
    body: bytes


def post(
    endpoint: Endpoint,
    request: Request,
    deadline: float,
    *,
    server: str,
    most_bytes: int = MOST_BYTES,
    monotonic: Callable[[], float] = time.monotonic,
    connect: Connect | None = None,
) -> tuple[str, bytes]:
    """Post something; return the content type of the answer, and all of it.

    :param deadline: instant (s) of ``monotonic``
    :param server: what it is called where something goes wrong
    :param most_bytes: that an answer may have, with its head
    :raises ModelError: if there is no whole answer by then
    """
    exchange = _Exchange(
        *(endpoint, deadline, lambda: None, False, monotonic, connect, never),
        server=server,
        most_bytes=most_bytes,
    )
    try:
        return exchange.posted(request, _whole)
    except TimeoutError:
        raise ModelError(f'{server} was cut off at the deadline') from None


class _RefusedError(ModelError):
    """A server answered another status than OK."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class _TooMuchError(OSError):
    """A server sends more than anybody needs; no ValueError, which means others to `http`."""


class _Exchange:
    """Requests that share a deadline and a count of bytes."""

    def __init__(
        self,
        endpoint: Endpoint,
        deadline: float,
        on_first_token: Callable[[], None],
        bound: bool,
        monotonic: Callable[[], float],
        connect: Connect | None,
        is_cancelled: Callable[[], bool],
        *,
        server: str = 'the model server',
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._endpoint, self._bound = endpoint, bound
        self._server, self._most_bytes = server, most_bytes
        self._is_cancelled = is_cancelled
        self._deadline, self._monotonic = deadline, monotonic
        self._on_first_token = on_first_token
        self._connect = connect or endpoint.connect
        self._begun = monotonic()
        self._first_token = 0.0
        self._pieces = self._counted = 0
        self._bytes_left = most_bytes

    def answer(self, request: Mapping[str, Any]) -> StreamedAnswer:
        """Send a request and read the answer.

        :raises ModelError: see `ask_endpoint`
        """
        body = json.dumps(request).encode()
        chat = Request(self._endpoint.path, 'application/json', 'text/event-stream', body)
        try:
            text = self.posted(chat, self._text)
        except TimeoutError:
            raise ModelError(self._cut_off()) from None
        words, tracks = _answer_of(text) if self._bound else (text, ())
        seconds = self._monotonic() - self._begun
        tokens = self._counted or self._pieces
        return StreamedAnswer(words, tracks, self._first_token, seconds, tokens)

    def posted(
        self, request: Request, read: Callable[[http.client.HTTPResponse], ResultT]
    ) -> ResultT:
        """Post something on a connection of its own; return what is read of the answer.

        :raises TimeoutError: at the deadline
        :raises ModelError: for whatever else goes wrong
        """
        server = f'{self._server} at {self._endpoint.words}'
        try:
            connection = self._connect(self._left())
            try:
                return read(self._response(connection, request))
            finally:
                connection.close()
        except TimeoutError:
            raise
        except _TooMuchError:
            raise ModelError(f'{server} sent more than {self._most_bytes >> 20} MB') from None
        except ModelError:
            raise
        except http.client.IncompleteRead:
            raise ModelError(f'{server} ended the connection in its answer') from None
        except http.client.RemoteDisconnected:
            raise ModelError(f'{server} ended the connection without an answer') from None
        # The standard library trusts some lengths that a server says.
        except (http.client.HTTPException, ValueError) as err:
            raise ModelError(f'{server} does not speak HTTP ({printable(brief(err))})') from None
        except OSError as err:
            raise ModelError(f'{server} cannot be asked: {err.strerror or brief(err)}') from None

    def _left(self) -> float:
        """Return what is left until the deadline (s).

        :raises TimeoutError: if that is nothing
        :raises ModelError: if it is cancelled
        """
        if self._is_cancelled():
            raise ModelError(CANCELLED)
        left = self._deadline - self._monotonic()
        if left <= 0.0:
            raise TimeoutError
        return left

    def _cut_off(self) -> str:
        said = f'after {self._pieces} parts' if self._pieces else 'before its first word'
        return f'the model was cut off at the deadline, {said} of its answer'

    def _response(self, connection: Connection, request: Request) -> http.client.HTTPResponse:
        head = (
            f'POST {request.path} HTTP/1.1',
            f'Host: {"localhost" if self._endpoint.socket else self._endpoint.host}',
            'Connection: close',
            f'Content-Type: {request.kind}',
            f'Accept: {request.accept}',
            f'Content-Length: {len(request.body)}',
        )
        connection.settimeout(self._left())
        connection.sendall('\r\n'.join((*head, '', '')).encode() + request.body)
        reader = _BoundedReader(connection, self._left, self._count)
        response = http.client.HTTPResponse(_AsSocket(reader), method='POST')  # type: ignore[arg-type]
        response.begin()
        if response.status != http.HTTPStatus.OK:
            words = _error_words(_body(response))
            sentence = f'{self._server} answered {response.status}{words}'
            raise _RefusedError(sentence, response.status)
        return response

    def _count(self, number: int) -> None:
        self._bytes_left -= number
        if self._bytes_left < 0:
            raise _TooMuchError

    def _text(self, response: http.client.HTTPResponse) -> str:
        parts: list[str] = []
        length = 0
        for event in self._events(response):
            piece = self._piece(event)
            length += len(piece)
            if length > _LONGEST_TEXT:
                raise ModelError(f'the model said more than {_LONGEST_TEXT} characters')
            parts.append(piece)
        return ''.join(parts)

    def _events(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        """Yield the data of server-sent events up to the end of the answer."""
        pending = b''
        while received := response.read1(_LONGEST_EVENT):
            self._left()
            *lines, pending = (pending + received).split(b'\n')
            for line in lines:
                data = line.removeprefix(b'data:').strip()
                if data == b'[DONE]':
                    return
                if line.startswith(b'data:'):
                    yield data
            if len(pending) > _LONGEST_EVENT:
                raise ModelError('the model server sent no stream of a chat')
        if not self._pieces:
            raise ModelError('the model server sent no stream of a chat')
        raise ModelError('the model server ended the connection in its answer')

    def _piece(self, event: bytes) -> str:
        """Return the text of an event, '' where it has none."""
        content = parsed(event)
        if content is None:
            raise ModelError('the model server sent an event that is no JSON')
        if 'error' in content:
            raise ModelError(f'the model server broke off{_error_words(event)}')
        timings = content.get('timings')
        if isinstance(timings, dict) and isinstance(timings.get('predicted_n'), int):
            self._counted = min(max(timings['predicted_n'], 0), MOST_BYTES)
        choices = content.get('choices')
        choice = choices[0] if isinstance(choices, list) and choices else None
        choice = choice if isinstance(choice, dict) else {}
        if self._bound and choice.get('finish_reason') == 'length':
            raise ModelError('the model was not done with the tokens that an answer may have')
        delta = choice.get('delta')
        text = delta.get('content') if isinstance(delta, dict) else None
        if not isinstance(text, str) or not text:
            return ''
        if not self._pieces:
            self._first_token = self._monotonic() - self._begun
            self._on_first_token()
        self._pieces += 1
        return text


class _BoundedReader(io.RawIOBase):
    """Reads from a connection; no read outlasts the deadline or the count of bytes."""

    def __init__(
        self, connection: Connection, left: Callable[[], float], count: Callable[[int], None]
    ) -> None:
        super().__init__()
        self._connection, self._left, self._count = connection, left, count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        received = self._received(len(buffer))
        self._count(len(received))
        buffer[: len(received)] = received
        return len(received)

    def _received(self, most: int) -> bytes:
        while True:
            self._connection.settimeout(min(self._left(), LOOK))
            with suppress(TimeoutError):
                return self._connection.recv(most)


class _AsSocket:
    """What `HTTPResponse` wants of a socket."""

    def __init__(self, reader: _BoundedReader) -> None:
        self._reader = reader

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._reader)


def _whole(response: http.client.HTTPResponse) -> tuple[str, bytes]:
    """Return the content type and all of an answer; the connection bounds what is read."""
    parts: list[bytes] = []
    while received := response.read1(_LONGEST_EVENT):
        parts.append(received)
    if response.length:
        raise http.client.IncompleteRead(b'')
    return response.headers.get_content_type(), b''.join(parts)


def _body(response: http.client.HTTPResponse) -> bytes:
    body = b''
    # The status is what counts, also of an answer that breaks off.
    with suppress(http.client.HTTPException, ValueError):
        while len(body) < _LONGEST_EVENT and (received := response.read1(_LONGEST_EVENT)):
            body += received
    return body


def parsed(text: bytes | str) -> dict[str, Any] | None:
    """Return a JSON object; None for anything else."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _error_words(body: bytes) -> str:
    """Return what an error says, as the end of a sentence."""
    error = (parsed(body) or {}).get('error')
    message = error.get('message') if isinstance(error, dict) else error
    words = printable(message)[:_LONGEST_REASON] if isinstance(message, str) else ''
    return f': {words}' if words else ''


def printable(text: str) -> str:
    """Make a foreign text one line without what a terminal would obey."""
    return ' '.join(''.join(c if c.isprintable() else ' ' for c in text).split())


def _answer_of(text: str) -> tuple[str, tuple[int, ...]]:
    """Read an answer in the form of `ANSWER_SCHEMA`; prose and fences around it are left out.

    :raises ModelError: if there is none
    """
    content = parsed(text[text.find('{') : text.rfind('}') + 1])
    if content is None:
        raise ModelError('the model answered something else than the JSON it was asked for')
    answer, tracks = content.get('answer'), content.get('tracks', [])
    is_sound = (
        isinstance(answer, str)
        and isinstance(tracks, list)
        and len(tracks) <= _MOST_TRACKS
        and all(isinstance(one, int) and not isinstance(one, bool) for one in tracks)
    )
    words = printable(str(answer))
    if not is_sound or not words:
        raise ModelError('the model answered JSON of another form than it was asked for')
    if len(words) > LONGEST_ANSWER:
        raise ModelError(f'the model answered more than {LONGEST_ANSWER} characters')
    return words, tuple(tracks)
