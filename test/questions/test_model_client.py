"""A model answers by the deadline, or a sentence says why it does not."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_model_server import (
    CHUNKED,
    DONE,
    STREAM,
    Scripts,
    answered,
    chunk,
    event,
    failed,
    listening,
    short_folder,
)

from mmedge_ros.questions.model_client import (
    ANSWER_SCHEMA,
    CANCELLED,
    LONGEST_ANSWER,
    Endpoint,
    ModelError,
    StreamedAnswer,
    ask_endpoint,
    read_endpoint,
)

PATIENCE, LITTLE, HANGS = 20.0, 0.4, 60.0
MESSAGES = [{'role': 'user', 'content': 'who?'}]


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as made:
        yield made


def ask(folder: Path, scripts: Scripts, seconds: float = PATIENCE, **form: Any) -> StreamedAnswer:
    with listening(folder, scripts) as endpoint:
        return ask_endpoint(endpoint, MESSAGES, time.monotonic() + seconds, **form)


def why_not(folder: Path, script: list[bytes | float], seconds: float = PATIENCE) -> str:
    with pytest.raises(ModelError) as refusal:
        ask(folder, Scripts(script), seconds)
    return str(refusal.value)


@pytest.mark.parametrize('chunked', [False, True])
def test_a_streamed_answer_is_put_together_whatever_its_parts(folder: Path, chunked: bool) -> None:
    timed = event('', timings={'predicted_n': 40})
    parts = [event('{"answer": "Two peo'), event('ple.", "tra'), event('cks": [3, 7]}'), timed]
    content = b''.join([*parts, DONE])
    if chunked:
        content = b''.join(chunk(part) for part in (*parts, DONE)) + b'0\r\n\r\n'
    head = CHUNKED if chunked else STREAM
    said = ask(
        folder, Scripts([head, *(content[at : at + 7] for at in range(0, len(content), 7))])
    )
    assert (said.text, said.tracks, said.tokens) == ('Two people.', (3, 7), 40)


def test_the_times_of_an_answer_are_those_of_its_parts(folder: Path) -> None:
    script = [STREAM, 0.1, event('{"answer": "A."'), 0.5, event('}'), DONE]
    said = ask(folder, Scripts(script))
    assert said.tokens == 2
    assert 0.1 <= said.first_token <= said.seconds - 0.25  # a busy machine reads parts late


def test_an_answer_is_bound_to_a_schema_and_to_no_chance(folder: Path) -> None:
    scripts = Scripts([STREAM, answered('A.'), DONE])
    ask(folder, scripts)
    (request,) = scripts.requests
    assert request['response_format']['json_schema']['schema'] == ANSWER_SCHEMA
    assert request['stream'] is True
    assert request['temperature'] == 0.0
    assert request['messages'] == MESSAGES


def test_a_server_that_knows_no_schemas_is_asked_without_and_its_answer_is_checked(
    folder: Path,
) -> None:
    refuses = [failed('400 Bad Request', b'{"error": "response_format"}')]
    fenced = event('Sure!\n```json\n{"answer": "A.", "tracks": []}\n```')
    scripts = Scripts(refuses, [STREAM, fenced, DONE])
    assert ask(folder, scripts).text == 'A.'
    assert ['response_format' in request for request in scripts.requests] == [True, False]


def test_an_answer_that_is_to_have_no_form_is_taken_as_it_is(folder: Path) -> None:
    cut = b'data: {"choices": [{"finish_reason": "length"}]}\n\n'
    scripts = Scripts([STREAM, event('Two '), event('peo'), cut, DONE])
    said = ask(folder, scripts, bound=False, most_tokens=2)
    assert (said.text, said.tracks, said.tokens) == ('Two peo', (), 2)
    (request,) = scripts.requests
    assert 'response_format' not in request
    assert request['max_tokens'] == 2


@pytest.mark.parametrize(
    ('script', 'words'),
    [
        ([HANGS], 'deadline, before its first word'),
        ([*(b'H', 0.01) * 500], 'deadline, before its first word'),
        ([STREAM, event('{"answer'), HANGS], 'deadline, after 1 parts'),
        ([CHUNKED, *(b'1', 0.01) * 500], 'deadline, before'),
        ([b'HTTP/1.1 500 X\r\n\r\n', *(b' ', 0.01) * 500], 'deadline, before'),
    ],
)
def test_a_server_that_hangs_or_sends_slowly_is_cut_off_at_the_deadline(
    folder: Path, script: list[bytes | float], words: str
) -> None:
    begun = time.monotonic()
    assert words in why_not(folder, script, LITTLE)
    # What a busy machine adds.
    assert LITTLE <= time.monotonic() - begun < LITTLE + 4.0


@pytest.mark.parametrize(
    ('script', 'words'),
    [
        ([], 'cannot be asked'),
        ([STREAM, event('{"answer"')], 'ended the connection in its answer'),
        ([CHUNKED, chunk(event('{"answer"'))], 'cannot be asked'),
        ([b'SSH-2.0-OpenSSH_9.6\r\n'], 'cannot be asked'),
        ([b'HTTP/1.1 500 X\r\n', b'A: b\r\n' * 40000], 'cannot be asked'),
        ([failed('500 X', b'{"error": "out\\n\\u001b of memory"}')], '500: out of memory'),
        ([failed('500 X', b'{"error": "' + b'a' * 9000 + b'"}')], 'aaaa'),
        ([b'HTTP/1.1 500 X\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nx'], 'answered 500'),
        ([failed('302 Found')], 'answered 302'),
        ([STREAM, b'<html>hello</html>'], 'no stream of a chat'),
        ([STREAM, b'x' * (1 << 20)], 'no stream of a chat'),
        ([STREAM, b'data: {nothing}\n\n'], 'no JSON'),
        ([STREAM, b'data: ' + b'[' * 60000 + b'\n\n'], 'no JSON'),
        ([STREAM, b'data: {"error": {"message": "no slot"}}\n\n'], 'broke off: no slot'),
        ([STREAM, b'data: {"choices": [3]}\n\ndata: {"choices": 3}\n\n', DONE], 'JSON'),
        ([STREAM, event('babble ' * 1000) * 50], 'more than 9600 characters'),
        ([STREAM, b': \n' * (1 << 20)], 'more than 2 MB'),
        ([STREAM, b'data: {"choices": [{"finish_reason": "length"}]}\n\n'], 'not done'),
        ([STREAM, event('Two people.'), DONE], 'something else than the JSON'),
        ([STREAM, event('{"answer": 3, "tracks": []}'), DONE], 'another form'),
        ([STREAM, event('{"answer": "A.", "tracks": [true]}'), DONE], 'another form'),
        ([STREAM, event('{"answer": " \\u0000", "tracks": []}'), DONE], 'another form'),
        ([STREAM, answered('a' * (LONGEST_ANSWER + 1)), DONE], 'more than 600 characters'),
    ],
)
def test_what_goes_wrong_is_said_in_a_sentence(
    folder: Path, script: list[bytes | float], words: str
) -> None:
    sentence = why_not(folder, script)
    assert words in sentence
    assert sentence.isprintable()
    assert len(sentence) < 400


def test_what_a_terminal_would_obey_is_no_part_of_an_answer(folder: Path) -> None:
    said = ask(folder, Scripts([STREAM, answered('red\x1b[31m\n  and \u202eblue'), DONE]))
    assert said.text == 'red [31m and blue'


def test_after_the_deadline_nobody_is_asked(folder: Path) -> None:
    scripts = Scripts([STREAM, answered('A.'), DONE])
    with pytest.raises(ModelError, match='at the deadline'):
        ask(folder, scripts, seconds=0.0)
    assert scripts.requests == []


def test_a_question_that_is_cancelled_leaves_its_server_at_once(folder: Path) -> None:
    first, begun = threading.Event(), time.monotonic()
    script = [STREAM, event('{"answer'), HANGS]
    with pytest.raises(ModelError, match=CANCELLED):
        ask(folder, Scripts(script), on_first_token=first.set, is_cancelled=first.is_set)
    assert time.monotonic() - begun < PATIENCE / 2


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    nobody = Endpoint(socket=str(tmp_path / 'nobody.sock'))
    with pytest.raises(ModelError, match=r'nobody\.sock cannot be asked: .*No such file'):
        ask_endpoint(nobody, MESSAGES, time.monotonic() + PATIENCE)


def test_without_httpx2_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'httpx2', None)
    with pytest.raises(ModelError, match='pip install httpx2'):
        ask_endpoint(Endpoint(socket='/x'), MESSAGES, time.monotonic() + PATIENCE)


def test_a_model_is_asked_on_the_loopback_and_past_any_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv('http_proxy', 'http://127.0.0.1:9')
    with socket.create_server(('127.0.0.1', 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                Scripts([STREAM + answered('A.') + DONE])(connection, threading.Event())

        thread = threading.Thread(target=serve)
        thread.start()
        endpoint = read_endpoint(f'http://localhost:{listener.getsockname()[1]}')
        assert ask_endpoint(endpoint, MESSAGES, time.monotonic() + PATIENCE).text == 'A.'
        thread.join()


@pytest.mark.parametrize(
    ('text', 'words', 'path'),
    [
        ('http://127.0.0.1:8080', '127.0.0.1:8080', '/v1/chat/completions'),
        ('http://localhost:8080/', '127.0.0.1:8080', '/v1/chat/completions'),
        ('http://[::1]:1/api/v1', '::1:1', '/api/v1/chat/completions'),
        ('http://127.0.0.1/v1/chat/completions', '127.0.0.1:80', '/v1/chat/completions'),
        ('unix:/run/model.sock', '/run/model.sock', '/v1/chat/completions'),
    ],
)
def test_an_endpoint_of_this_machine_is_read(text: str, words: str, path: str) -> None:
    endpoint = read_endpoint(text)
    assert (endpoint.words, endpoint.path) == (words, path)


@pytest.mark.parametrize(
    'text',
    [
        '',
        'http://192.168.1.7:8080',
        'http://example.com',
        'https://127.0.0.1',
        'http://127.0.0.1/v1?key=1',
        'http://127.0.0.1/v1 HTTP/1.1',
        'http://[',
    ],
)
def test_other_machines_and_what_is_no_endpoint_are_refused(text: str) -> None:
    with pytest.raises(ModelError, match='no endpoint of this machine'):
        read_endpoint(text)
