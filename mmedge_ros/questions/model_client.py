"""Asks a language model behind an OpenAI-compatible endpoint, with a deadline.

The endpoint is on this machine: HTTP on its loopback, or a unix socket. What it sends is
hostile: bytes are bounded, every wait ends at the deadline, and the answer must have the form
that was asked for, whether or not the server knows schemas.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mmedge_ros.core.untrusted_files import brief, printable
from mmedge_ros.questions import QuestionError

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 2 << 20
LONGEST_ANSWER = 600
MOST_TOKENS = 320
_LONGEST_EVENT = 1 << 16
_LONGEST_TEXT = 16 * LONGEST_ANSWER
_LONGEST_REASON = 200
_MOST_TRACKS = 20
_PATH = '/v1/chat/completions'
CANCELLED = 'the question was cancelled'
# A wait looks this often (s) whether it is cancelled.
LOOK = 0.1
# What servers answer to a field that they do not know.
_NOT_UNDERSTOOD = (400, 404, 422, 501)
_REMEDY = 'pip install httpx2, which model servers are asked with'

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


def never() -> bool:
    """Say that nothing is cancelled."""
    return False


@dataclass(frozen=True)
class Endpoint:
    """Where a model is asked: a unix ``socket``, or a ``port`` at a loopback address ``host``.

    ``path`` is that of chat completions.
    """

    socket: str = ''
    host: str = ''
    port: int = 0
    path: str = _PATH

    @property
    def words(self) -> str:
        return self.socket or f'{self.host}:{self.port}'

    @property
    def url(self) -> str:
        host = f'[{self.host}]' if ':' in self.host else self.host
        return (
            f'http://localhost{self.path}'
            if self.socket
            else f'http://{host}:{self.port}{self.path}'
        )


def is_endpoint(name: str) -> bool:
    """Say whether a model is named by an address of a server, and not by a file."""
    return '://' in name or name.startswith('unix:')


def read_endpoint(text: str) -> Endpoint:
    """Read ``http://127.0.0.1:8080``, with or without a path such as ``/v1``, or ``unix:/a/b``.

    :raises ModelError: for anything else, other machines among it: pictures show people
    """
    if text.startswith('unix:/'):
        return Endpoint(socket=text.removeprefix('unix:'))
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
    return Endpoint(host=host, port=port, path=path)


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
    is_cancelled: Callable[[], bool] = never,
) -> StreamedAnswer:
    """Ask a model, and cut it off at the deadline.

    :param messages: those of a chat, as OpenAI has them
    :param deadline: instant (s) of `time.monotonic`
    :param bound: whether an answer has the form of `ANSWER_SCHEMA`; else any words are one
    :param is_cancelled: asked at least every tenth of a second
    :raises ModelError: if there is no such answer by then
    """
    try:
        import httpx2
    except ImportError as err:
        raise ModelError(f'httpx2 cannot be imported ({brief(err)}): {_REMEDY}') from err
    request: dict[str, Any] = {
        'model': 'default',
        'messages': list(messages),
        'stream': True,
        'temperature': 0.0,
        'max_tokens': most_tokens,
    }
    chat = _Chat(endpoint, bound, on_first_token)

    async def asked() -> str:
        way = httpx2.AsyncHTTPTransport(verify=False, uds=endpoint.socket or None)
        # Neither a proxy nor a .netrc of the environment is used; the deadline ends every wait.
        async with httpx2.AsyncClient(transport=way, timeout=None, trust_env=False) as client:
            answering = asyncio.ensure_future(chat.answered(client, request))
            try:
                while not answering.done():
                    if is_cancelled():
                        raise ModelError(CANCELLED)
                    left = deadline - time.monotonic()
                    if left <= 0.0:
                        raise ModelError(chat.cut_off())
                    await asyncio.wait({answering}, timeout=min(left, LOOK))
                return await answering
            finally:
                answering.cancel()
                with suppress(asyncio.CancelledError, Exception):
                    await answering

    try:
        text = asyncio.run(asked())
    except httpx2.HTTPError as err:
        raise ModelError(f'{chat.server} cannot be asked: {printable(brief(err))}') from None
    words, tracks = _answer_of(text) if bound else (text, ())
    seconds = time.monotonic() - chat.begun
    return StreamedAnswer(words, tracks, chat.first_token, seconds, chat.counted or chat.pieces)


class _RefusedError(ModelError):
    """A server answered another status than OK."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class _Chat:
    """The state of an answer that is being received."""

    def __init__(
        self, endpoint: Endpoint, bound: bool, on_first_token: Callable[[], None]
    ) -> None:
        self.begun = time.monotonic()
        self.first_token = 0.0
        self.pieces = self.counted = self._bytes = 0
        self.server = f'the model server at {endpoint.words}'
        self._endpoint, self._bound, self._on_first_token = endpoint, bound, on_first_token

    def cut_off(self) -> str:
        """Say how far the answer was at the deadline."""
        said = f'after {self.pieces} parts' if self.pieces else 'before its first word'
        return f'the model was cut off at the deadline, {said} of its answer'

    async def answered(self, client: httpx2.AsyncClient, request: Mapping[str, Any]) -> str:
        """Return the text of an answer.

        :raises ModelError: if it is none
        :raises httpx2.HTTPError: if the connection fails
        """
        if not self._bound:
            return await self._text(client, request)
        form = {'name': 'answer', 'strict': True, 'schema': ANSWER_SCHEMA}
        schema = {'response_format': {'type': 'json_schema', 'json_schema': form}}
        try:
            return await self._text(client, {**request, **schema})
        except _RefusedError as refusal:
            if refusal.status not in _NOT_UNDERSTOOD:
                raise
            return await self._text(client, request)

    async def _text(self, client: httpx2.AsyncClient, request: Mapping[str, Any]) -> str:
        # What is packed could grow without bound.
        head = {'Accept': 'text/event-stream', 'Accept-Encoding': 'identity'}
        url = self._endpoint.url
        async with client.stream('POST', url, json=request, headers=head) as response:
            received = self._received(response)
            if response.status_code != 200:
                words = _error_words(await _first(received))
                sentence = f'the model server answered {response.status_code}{words}'
                raise _RefusedError(sentence, response.status_code)
            text = ''
            async for event in self._events(received):
                text += self._piece(event)
                if len(text) > _LONGEST_TEXT:
                    raise ModelError(f'the model said more than {_LONGEST_TEXT} characters')
            return text

    async def _received(self, response: httpx2.Response) -> AsyncIterator[bytes]:
        async for part in response.aiter_raw():
            self._bytes += len(part)
            if self._bytes > MOST_BYTES:
                raise ModelError(f'{self.server} sent more than {MOST_BYTES >> 20} MB')
            yield part

    async def _events(self, received: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the data of server-sent events up to the end of the answer."""
        pending = b''
        async for part in received:
            *lines, pending = (pending + part).split(b'\n')
            for line in lines:
                data = line.removeprefix(b'data:').strip()
                if data == b'[DONE]':
                    return
                if line.startswith(b'data:'):
                    yield data
            if len(pending) > _LONGEST_EVENT:
                break
        if len(pending) > _LONGEST_EVENT or not self.pieces:
            raise ModelError('the model server sent no stream of a chat')
        raise ModelError('the model server ended the connection in its answer')

    def _piece(self, event: bytes) -> str:
        """Return the text of an event, '' where it has none."""
        content = _parsed(event)
        if content is None:
            raise ModelError('the model server sent an event that is no JSON')
        if 'error' in content:
            raise ModelError(f'the model server broke off{_error_words(event)}')
        timings = content.get('timings')
        if isinstance(timings, dict) and isinstance(timings.get('predicted_n'), int):
            self.counted = min(max(timings['predicted_n'], 0), MOST_BYTES)
        choices = content.get('choices')
        choice = choices[0] if isinstance(choices, list) and choices else None
        choice = choice if isinstance(choice, dict) else {}
        if self._bound and choice.get('finish_reason') == 'length':
            raise ModelError('the model was not done with the tokens that an answer may have')
        delta = choice.get('delta')
        text = delta.get('content') if isinstance(delta, dict) else None
        if not isinstance(text, str) or not text:
            return ''
        if not self.pieces:
            self.first_token = time.monotonic() - self.begun
            self._on_first_token()
        self.pieces += 1
        return text


async def _first(received: AsyncIterator[bytes]) -> bytes:
    """Return the begin of an answer, or all that came of one that broke off."""
    import httpx2

    body = b''
    with suppress(httpx2.HTTPError, ModelError):
        async for part in received:
            body += part
            if len(body) > _LONGEST_EVENT:
                break
    return body


def _parsed(text: bytes | str) -> dict[str, Any] | None:
    """Return a JSON object; None for anything else."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _error_words(body: bytes) -> str:
    """Return what an error says, as the end of a sentence."""
    error = (_parsed(body) or {}).get('error')
    message = error.get('message') if isinstance(error, dict) else error
    words = printable(message)[:_LONGEST_REASON] if isinstance(message, str) else ''
    return f': {words}' if words else ''


def _answer_of(text: str) -> tuple[str, tuple[int, ...]]:
    """Read an answer in the form of `ANSWER_SCHEMA`; prose and fences around it are left out.

    :raises ModelError: if there is none
    """
    content = _parsed(text[text.find('{') : text.rfind('}') + 1])
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
