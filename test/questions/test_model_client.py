"""A model answers by the deadline, or a sentence says why it does not."""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path

import pytest
from fake_model_server import (
    CHUNKED,
    DONE,
    HEAD,
    STREAM,
    ScriptedServer,
    answered,
    chunk,
    event,
    failed,
    listening,
)

from mmedge_ros.questions.model_client import (
    ANSWER_SCHEMA,
    LONGEST_ANSWER,
    Endpoint,
    ModelError,
    StreamedAnswer,
    ask_endpoint,
    read_endpoint,
)

DEADLINE = 2.0
HANGS = ScriptedServer.HANGS
MESSAGES = [{'role': 'user', 'content': 'who?'}]
SERVER = Endpoint(socket='/run/model.sock')


def ask(server: ScriptedServer, deadline: float = DEADLINE) -> StreamedAnswer:
    return ask_endpoint(
        SERVER, MESSAGES, deadline, monotonic=server.monotonic, connect=server.connect
    )


def why_not(server: ScriptedServer) -> str:
    with pytest.raises(ModelError) as refusal:
        ask(server)
    return str(refusal.value)


@pytest.mark.parametrize('chunked', [False, True])
def test_a_streamed_answer_is_put_together_whatever_its_parts(chunked: bool) -> None:
    parts = [event('{"answer": "Two peo'), event('ple.", "tra'), event('cks": [3, 7]}'), DONE]
    content = b''.join(parts)
    if chunked:
        content = b''.join(chunk(part) for part in parts) + b'0\r\n\r\n'
    head = CHUNKED if chunked else STREAM
    server = ScriptedServer([head, *(content[at : at + 7] for at in range(0, len(content), 7))])
    said = ask(server)
    assert (said.text, said.tracks, said.tokens) == ('Two people.', (3, 7), 3)
    assert server.closed == 1


def test_the_times_of_an_answer_are_those_of_its_parts() -> None:
    timed = event('', timings={'predicted_n': 40})
    server = ScriptedServer([STREAM, 0.5, event('{"answer": "A."'), 1.0, event('}'), timed, DONE])
    said = ask(server)
    assert (said.first_token, said.tokens) == (0.5, 40)
    assert said.seconds == pytest.approx(1.5)


def test_an_answer_is_bound_to_a_schema_and_to_no_chance() -> None:
    server = ScriptedServer([STREAM, answered('A.'), DONE])
    ask(server)
    (request,) = server.requests
    assert request['response_format']['json_schema']['schema'] == ANSWER_SCHEMA
    assert request['stream'] is True
    assert request['temperature'] == 0.0
    assert request['messages'] == MESSAGES


def test_a_server_that_knows_no_schemas_is_asked_without_and_its_answer_is_checked() -> None:
    refuses = [failed('400 Bad Request', b'{"error": "response_format"}')]
    fenced = event('Sure!\n```json\n{"answer": "A.", "tracks": []}\n```')
    server = ScriptedServer(refuses, [STREAM, fenced, DONE])
    assert ask(server).text == 'A.'
    assert ['response_format' in request for request in server.requests] == [True, False]
    server = ScriptedServer(refuses, [STREAM, event('A.'), DONE])
    assert 'something else than the JSON' in why_not(server)


def test_an_answer_that_is_to_have_no_form_is_taken_as_it_is() -> None:
    cut = b'data: {"choices": [{"finish_reason": "length"}]}\n\n'
    server = ScriptedServer([STREAM, event('Two '), event('peo'), cut, DONE])
    said = ask_endpoint(
        *(SERVER, MESSAGES, DEADLINE),
        bound=False,
        most_tokens=2,
        monotonic=server.monotonic,
        connect=server.connect,
    )
    assert (said.text, said.tracks, said.tokens) == ('Two peo', (), 2)
    (request,) = server.requests
    assert 'response_format' not in request
    assert request['max_tokens'] == 2


@pytest.mark.parametrize(
    ('script', 'words'),
    [
        ([HANGS], 'deadline, before its first word'),
        ([b'HTTP/1.1 200 OK\r\n', HANGS], 'deadline, before its first word'),
        ([STREAM, event('{"answer'), HANGS], 'deadline, after 1 parts'),
        ([STREAM, *(0.3, event('a')) * 50], 'deadline, after 6 parts'),
        ([CHUNKED, *(0.3, b'1') * 50], 'deadline, before'),
        ([failed('500 X', b'')[:-2], *(0.3, b'X: y\r\n') * 50], 'deadline, before'),
        ([b'HTTP/1.1 500 X\r\n\r\n', *(0.3, b' ') * 50], 'deadline, before'),
    ],
)
def test_a_server_that_hangs_or_sends_slowly_is_cut_off_at_the_deadline(
    script: list[bytes | float], words: str
) -> None:
    server = ScriptedServer(script)
    assert words in why_not(server)
    assert server.now == pytest.approx(DEADLINE)
    assert server.closed == 1


@pytest.mark.parametrize(
    ('script', 'words'),
    [
        ([], 'ended the connection without an answer'),
        ([STREAM, event('{"answer"')], 'ended the connection in its answer'),
        ([CHUNKED, chunk(event('{"answer"'))], 'ended the connection in its answer'),
        ([CHUNKED, b'fffff\r\n', event('{')], 'ended the connection in its answer'),
        ([ConnectionResetError(104, 'Connection reset by peer')], 'Connection reset by peer'),
        ([b'SSH-2.0-OpenSSH_9.6\r\n'], 'does not speak HTTP'),
        ([b'HTTP/1.1 500 X\r\n', b'A: b\r\n' * 200], 'does not speak HTTP'),
        ([HEAD, b'Transfer-Encoding: chunked\r\n\r\n-5\r\n', b'x' * 9], 'ended the connection'),
        (
            [failed('500 X', b'{"error": "out\\n\\u001b of memory"}')],
            '500: out of memory',
        ),
        ([failed('500 X', b'{"error": "' + b'a' * 9000 + b'"}')], 'aaaa'),
        ([b'\x1b[31mHTTP/9\r\n'], 'does not speak HTTP'),
        ([failed('500 X', b'<html>')], 'answered 500'),
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
        ([CHUNKED, chunk(b'\n' * 500) * 5000], 'more than 2 MB'),
        ([STREAM, b'data: {"choices": [{"finish_reason": "length"}]}\n\n'], 'not done'),
        ([STREAM, event('Two people.'), DONE], 'something else than the JSON'),
        ([STREAM, event('[' * 5000 + '{}'), DONE], 'another form'),
        ([STREAM, event('{"answer": 3, "tracks": []}'), DONE], 'another form'),
        ([STREAM, event('{"answer": "A.", "tracks": [true]}'), DONE], 'another form'),
        ([STREAM, event('{"answer": "A.", "tracks": "7"}'), DONE], 'another form'),
        ([STREAM, event('{"answer": " \\u0000", "tracks": []}'), DONE], 'another form'),
        ([STREAM, answered('a' * (LONGEST_ANSWER + 1)), DONE], 'more than 600 characters'),
        ([STREAM, event('{"answer": "A.", "tracks": [' + '9' * 5000 + ']}'), DONE], 'else'),
    ],
)
def test_what_goes_wrong_is_said_in_a_sentence(
    script: list[bytes | float | OSError], words: str
) -> None:
    server = ScriptedServer(script)
    sentence = why_not(server)
    assert words in sentence
    assert sentence.isprintable()
    assert len(sentence) < 300
    assert server.closed == 1


def test_what_a_terminal_would_obey_is_no_part_of_an_answer() -> None:
    server = ScriptedServer([STREAM, answered('red\x1b[31m\n  and \u202eblue'), DONE])
    assert ask(server).text == 'red [31m and blue'


def test_after_the_deadline_nobody_is_asked() -> None:
    server = ScriptedServer([STREAM, answered('A.'), DONE])
    with pytest.raises(ModelError, match='at the deadline'):
        ask(server, deadline=0.0)
    assert server.requests == []


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    nobody = Endpoint(socket=str(tmp_path / 'nobody.sock'))
    with pytest.raises(ModelError, match=r'nobody\.sock cannot be asked: No such file'):
        ask_endpoint(nobody, MESSAGES, time.monotonic() + DEADLINE)


def test_a_model_is_asked_on_the_loopback_too() -> None:
    with socket.create_server(('127.0.0.1', 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                while b'"messages"' not in connection.recv(65536):
                    pass
                connection.sendall(STREAM + answered('A.') + DONE)

        thread = threading.Thread(target=serve)
        thread.start()
        endpoint = read_endpoint(f'http://localhost:{listener.getsockname()[1]}')
        assert ask_endpoint(endpoint, MESSAGES, time.monotonic() + 10.0).text == 'A.'
        thread.join()


def _hang(connection: socket.socket, ended: threading.Event) -> None:
    ended.wait()


def _babble(connection: socket.socket, ended: threading.Event) -> None:
    connection.sendall(STREAM)
    while not ended.is_set():
        connection.sendall(b': \n')


def _drip(connection: socket.socket, ended: threading.Event) -> None:
    while not ended.wait(0.01):
        connection.sendall(b'H')


@pytest.mark.parametrize('serve', [_hang, _babble, _drip])
def test_by_the_clock_of_the_wall_too_no_server_outlasts_the_deadline(
    tmp_path: Path, serve: object
) -> None:
    with listening(tmp_path, serve) as endpoint:
        deadline = time.monotonic() + 0.2
        with pytest.raises(ModelError):
            ask_endpoint(endpoint, MESSAGES, deadline)
        # 50 ms, and what a busy machine adds.
        assert time.monotonic() < deadline + 0.05 + 0.5


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
        'model.sock',
        'http://192.168.1.7:8080',
        'http://example.com',
        'https://127.0.0.1',
        'file:///etc/passwd',
        'http://127.0.0.1:99999',
        'http://127.0.0.1/v1?key=1',
        'http://127.0.0.1/v1 HTTP/1.1',
        'http://[',
    ],
)
def test_other_machines_and_what_is_no_endpoint_are_refused(text: str) -> None:
    with pytest.raises(ModelError, match='no endpoint of this machine'):
        read_endpoint(text)


def test_the_name_of_a_model_is_passed_on() -> None:
    server = ScriptedServer([STREAM, answered('A.'), DONE])
    endpoint = read_endpoint('unix:/run/model.sock', 'small')
    ask_endpoint(endpoint, MESSAGES, 1.0, monotonic=server.monotonic, connect=server.connect)
    assert json.dumps(server.requests[0]['model']) == '"small"'
