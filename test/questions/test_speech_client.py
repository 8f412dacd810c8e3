"""Questions are heard and answers spoken by the deadline, or a sentence says why not."""

from __future__ import annotations

import email
import json
import os
import socket
import threading
import time
from pathlib import Path

import pytest
from fake_model_server import CHUNKED, ScriptedServer, chunk, failed, listening, whole

from mmedge_ros.questions.model_client import Endpoint, ModelError, read_endpoint
from mmedge_ros.questions.speech_client import MOST_AUDIO, hear, read_wave, speak

DEADLINE = 2.0
HANGS = ScriptedServer.HANGS
SERVER = Endpoint(socket='/run/speech.sock')
WAVE = b'RIFF\x24\x00\x00\x00WAVEfmt ' + bytes(range(256))
JSON = 'application/json'


def heard(server: ScriptedServer, endpoint: Endpoint = SERVER) -> str:
    return hear(endpoint, WAVE, DEADLINE, monotonic=server.monotonic, connect=server.connect)


def spoken(server: ScriptedServer, text: str = 'Yes.') -> bytes:
    return speak(SERVER, text, DEADLINE, monotonic=server.monotonic, connect=server.connect)


def said(text: str) -> bytes:
    return whole(JSON, json.dumps({'text': text}).encode())


def test_the_sound_is_sent_as_a_form_and_its_text_is_the_question() -> None:
    server = ScriptedServer([said(' How many people\nare\x1b[31m there? ')])
    assert heard(server) == 'How many people are [31m there?'
    (sent,) = server.sent
    line, _, rest = sent.partition(b'\r\n')
    assert line == b'POST /v1/audio/transcriptions HTTP/1.1'
    form = email.message_from_bytes(rest)
    assert form.get_content_type() == 'multipart/form-data'
    parts = {
        part.get_param('name', header='content-disposition'): part for part in form.get_payload()
    }
    assert set(parts) == {'model', 'response_format', 'temperature', 'file'}
    assert WAVE + b'\r\n--' in sent
    assert parts['file'].get_content_type() == 'audio/wav'
    assert server.closed == 1


def test_the_answer_is_spoken_as_a_wave_file() -> None:
    server = ScriptedServer([whole('audio/wav', WAVE)])
    assert spoken(server, 'Yes:\ntrack 1.') == WAVE
    (request,) = server.requests
    assert (request['input'], request['response_format']) == ('Yes: track 1.', 'wav')
    assert server.sent[0].startswith(b'POST /v1/audio/speech HTTP/1.1\r\n')
    assert server.closed == 1


def test_the_path_of_an_address_is_kept() -> None:
    server = ScriptedServer([said('who?')])
    heard(server, read_endpoint('http://localhost:1/api/v1'))
    assert server.sent[0].startswith(b'POST /api/v1/audio/transcriptions ')


@pytest.mark.parametrize(
    ('script', 'words'),
    [
        ([], 'ended the connection without an answer'),
        ([HANGS], 'cut off at the deadline'),
        ([b'HTTP/1.1 200 OK\r\n', *(0.3, b'X: y\r\n') * 50], 'cut off at the deadline'),
        ([said('who?')[:-4], *(0.3, b' ') * 50], 'JSON of a transcription'),
        ([said('who?')[:-4], HANGS], 'cut off at the deadline'),
        ([said('who?')[:-4]], 'ended the connection in its answer'),
        ([failed('500 X', b'{"error": "no\\n\\u001b memory"}')], 'answered 500: no memory'),
        ([failed('302 Found\r\nLocation: http://192.0.2.1/')], 'answered 302'),
        ([whole('text/html', b'{"text": "who?"}')], 'JSON of a transcription'),
        ([whole(JSON, b'{"text": 3}')], 'JSON of a transcription'),
        ([whole(JSON, b'[' * 60000)], 'JSON of a transcription'),
        ([said(' \x00\n')], 'heard nothing'),
        ([said('who ' * 200)], 'heard 799 characters; a question has at most 500'),
        ([said('who ' * (10 << 18))], 'more than 2 MB'),
        ([CHUNKED, chunk(b' ' * 500) * 5000], 'more than 2 MB'),
        ([b'SSH-2.0-OpenSSH_9.6\r\n'], 'does not speak HTTP'),
        ([ConnectionResetError(104, 'Connection reset by peer')], 'Connection reset by peer'),
    ],
)
def test_what_goes_wrong_with_hearing_is_said_in_a_sentence(
    script: list[bytes | float | OSError], words: str
) -> None:
    server = ScriptedServer(script)
    with pytest.raises(ModelError, match='speech server') as refusal:
        heard(server)
    assert words in str(refusal.value)
    assert str(refusal.value).isprintable()
    assert server.now <= DEADLINE + 1e-9
    assert server.closed == 1


@pytest.mark.parametrize(
    ('script', 'words'),
    [
        ([HANGS], 'cut off at the deadline'),
        ([whole('audio/wav', WAVE)[:-9], HANGS], 'cut off at the deadline'),
        ([whole('audio/wav', WAVE)[:-9]], 'ended the connection in its answer'),
        ([whole('audio/wav', b'ID3' + WAVE)], 'something else than a WAV file'),
        ([whole('audio/wav', b'')], 'something else than a WAV file'),
        ([whole('text/html', WAVE)], 'something else than a WAV file'),
        ([failed('404 Not Found')], 'answered 404'),
        ([whole('audio/wav', WAVE + bytes(MOST_AUDIO))], 'more than 25 MB'),
    ],
)
def test_what_goes_wrong_with_speaking_is_said_in_a_sentence(
    script: list[bytes | float | OSError], words: str
) -> None:
    server = ScriptedServer(script)
    with pytest.raises(ModelError, match='speech server') as refusal:
        spoken(server)
    assert words in str(refusal.value)
    assert server.closed == 1


def _hang(connection: socket.socket, ended: threading.Event) -> None:
    ended.wait()


def _drip(connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: audio/wav\r\n\r\n')
    while not ended.wait(0.01):
        connection.sendall(b'R')


@pytest.mark.parametrize('serve', [_hang, _drip])
def test_a_real_server_that_takes_nothing_or_drips_is_cut_off_at_the_deadline(
    tmp_path: Path, serve: object
) -> None:
    with listening(tmp_path, serve) as endpoint:  # type: ignore[arg-type]
        deadline = time.monotonic() + 0.2
        with pytest.raises(ModelError, match='cut off at the deadline'):
            # More than a socket holds.
            hear(endpoint, WAVE + bytes(4 << 20), deadline)
        # 50 ms, and what a busy machine adds.
        assert time.monotonic() < deadline + 0.05 + 0.5


def test_what_is_no_wave_file_of_bounded_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'question.wav'
    path.write_bytes(WAVE)
    assert read_wave(path) == WAVE
    path.write_bytes(b'OggS' + WAVE)
    with pytest.raises(ModelError, match='no WAV file'):
        read_wave(path)
    with path.open('wb') as file:
        file.truncate(MOST_AUDIO + 1)
    with pytest.raises(ModelError, match='larger than'):
        read_wave(path)
    os.mkfifo(tmp_path / 'pipe')
    with pytest.raises(ModelError, match='no file'):
        read_wave(tmp_path / 'pipe')
