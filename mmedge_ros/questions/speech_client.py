"""Speech to text and back, by an OpenAI-compatible audio endpoint of this machine.

Each request has a connection of its own, which is closed after it. What a server says it heard is
hostile: it is one printable line, no longer than a question may be.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path

from mmedge_ros.memory.query import LONGEST_QUERY
from mmedge_ros.questions.model_client import (
    Connect,
    Endpoint,
    ModelError,
    Request,
    parsed,
    post,
    printable,
)
from mmedge_ros.untrusted_files import read_bounded

MOST_AUDIO = 25 << 20
_CHAT, _HEARS, _SPEAKS = '/chat/completions', '/audio/transcriptions', '/audio/speech'
# What servers call their usual models and voice, as OpenAI does.
_EARS, _MOUTH, _VOICE = 'whisper-1', 'tts-1', 'alloy'
# As much as such servers speak.
_LONGEST_SPOKEN = 4096
_SERVER = 'the speech server'


def read_wave(path: Path) -> bytes:
    """Read a WAV file.

    :raises ModelError: if it is none, or too large
    """
    if not path.is_file():  # what is no file may never end, or never begin
        raise ModelError(f'{path}: no file')
    content = read_bounded(path, MOST_AUDIO, ModelError, 'record a shorter question')
    if not _is_wave(content):
        raise ModelError(f'{path}: no WAV file')
    return content


def hear(
    endpoint: Endpoint,
    wave: bytes,
    deadline: float,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    connect: Connect | None = None,
) -> str:
    """Return the question that is spoken in a WAV file.

    :param deadline: instant (s) of ``monotonic``
    :raises ModelError: if nothing that may be a question comes by then
    """
    border = secrets.token_hex(16)
    fields = (('model', _EARS), ('response_format', 'json'), ('temperature', '0'))
    parts = [_part(border, f'name="{name}"', value.encode()) for name, value in fields]
    audio = 'name="file"; filename="question.wav"\r\nContent-Type: audio/wav'
    body = b''.join((*parts, _part(border, audio, wave), f'--{border}--\r\n'.encode()))
    kind = f'multipart/form-data; boundary={border}'
    request = Request(_path(endpoint, _HEARS), kind, 'application/json', body)
    kind, content = post(
        endpoint, request, deadline, server=_SERVER, monotonic=monotonic, connect=connect
    )
    text = (parsed(content) or {}).get('text') if kind == 'application/json' else None
    if not isinstance(text, str):
        raise ModelError(f'{_SERVER} answered something else than the JSON of a transcription')
    question = printable(text)
    if not question:
        raise ModelError(f'{_SERVER} heard nothing')
    if len(question) > LONGEST_QUERY:
        raise ModelError(
            f'{_SERVER} heard {len(question)} characters; a question has at most {LONGEST_QUERY}'
        )
    return question


def speak(
    endpoint: Endpoint,
    text: str,
    deadline: float,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    connect: Connect | None = None,
) -> bytes:
    """Return a WAV file in which a text is spoken.

    :param deadline: instant (s) of ``monotonic``
    :raises ModelError: if there is none by then
    """
    words = printable(text)[:_LONGEST_SPOKEN]
    wanted = {'model': _MOUTH, 'voice': _VOICE, 'input': words, 'response_format': 'wav'}
    body = json.dumps(wanted).encode()
    request = Request(_path(endpoint, _SPEAKS), 'application/json', 'audio/wav', body)
    kind, content = post(
        *(endpoint, request, deadline),
        server=_SERVER,
        most_bytes=MOST_AUDIO,
        monotonic=monotonic,
        connect=connect,
    )
    is_audio = kind.startswith('audio/') or kind == 'application/octet-stream'
    if not is_audio or not _is_wave(content):
        raise ModelError(f'{_SERVER} answered something else than a WAV file')
    return content


def _path(endpoint: Endpoint, path: str) -> str:
    """Return the path beside that of chat completions."""
    return endpoint.path.removesuffix(_CHAT) + path


def _part(border: str, head: str, content: bytes) -> bytes:
    start = f'--{border}\r\nContent-Disposition: form-data; {head}\r\n\r\n'
    return start.encode() + content + b'\r\n'


def _is_wave(content: bytes) -> bool:
    return content[:4] == b'RIFF' and content[8:12] == b'WAVE'
