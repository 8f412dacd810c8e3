"""`mmedge talk`: what is wrong is a sentence, and nothing is written."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from fake_model_server import failed, listening, whole
from short_folders import short_folder
from typer.testing import CliRunner, Result

from mmedge_ros.commands.main import app
from mmedge_ros.ros.sessions import talk_session


@pytest.fixture
def wave(tmp_path: Path) -> Path:
    path = tmp_path / 'question.wav'
    path.write_bytes(b'RIFF\x24\x00\x00\x00WAVEfmt ' + bytes(64))
    return path


def talk(*words: object) -> Result:
    return CliRunner().invoke(app, ['talk', *map(str, words)], env={'NO_COLOR': '1'})


def test_a_server_of_another_machine_is_refused(wave: Path) -> None:
    result = talk(wave, '--speech', 'http://192.0.2.7:8000')
    assert result.exit_code == 1
    assert 'is no endpoint of this machine' in result.stderr


def test_a_file_without_sound_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'text.wav').write_text('how many?')
    result = talk(tmp_path / 'text.wav', '--speech', 'unix:/run/speech.sock')
    assert result.exit_code == 1
    assert 'no WAV file' in result.stderr


def test_a_server_that_fails_costs_one_sentence(wave: Path, tmp_path: Path) -> None:
    def serve(connection: socket.socket, _: threading.Event) -> None:
        connection.recv(1 << 16)
        connection.sendall(failed('503 Busy', b'{"error": "out of memory"}'))

    with short_folder() as folder, listening(folder, serve) as endpoint:
        out = tmp_path / 'answer.wav'
        result = talk(wave, '--speech', f'unix:{endpoint.socket}', '--out', out)
    assert result.exit_code == 1
    assert result.stdout == ''
    assert 'mmedge: the speech server answered 503: out of memory' in result.stderr
    assert not out.exists()


def test_a_server_that_hangs_ends_the_command_at_the_deadline(wave: Path) -> None:
    def serve(_: socket.socket, ended: threading.Event) -> None:
        ended.wait()

    with short_folder() as folder, listening(folder, serve) as endpoint:
        result = talk(wave, '--speech', f'unix:{endpoint.socket}', '--within', 0.3)
    assert result.exit_code == 1
    assert 'cut off at the deadline' in result.stderr


@pytest.mark.parametrize('answer', ['2 people.', 'not answered: nothing was perceived'])
def test_an_answer_that_cannot_be_spoken_is_printed_all_the_same(
    wave: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    def serve(connection: socket.socket, _: threading.Event) -> None:
        is_sound = b'/audio/transcriptions' in connection.recv(1 << 16)
        text = whole('application/json', b'{"text": "how many?"}')
        connection.sendall(text if is_sound else failed('404 Not Found'))

    monkeypatch.setattr(talk_session, 'ask_graph', lambda _question, _deadline: (answer,))
    out = tmp_path / 'answer.wav'
    with short_folder() as folder, listening(folder, serve) as endpoint:
        address = f'unix:{endpoint.socket}'
        spoken = talk(wave, '--speech', address, '--out', out)
        printed = talk(wave, '--speech', address)
    assert (spoken.exit_code, spoken.stdout) == (1, f'how many?\n{answer}\n')
    assert 'the speech server answered 404' in spoken.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ['question.wav']
    assert printed.exit_code == (1 if answer.startswith('not') else 0)


@pytest.mark.parametrize(
    'words', [('--within', 0), ('--within', 601), ('--out', '/no/such/a.wav')]
)
def test_wrong_usage_is_named(wave: Path, words: tuple[object, ...]) -> None:
    result = talk(wave, '--speech', 'unix:/run/speech.sock', *words)
    assert result.exit_code == 2
    assert words[0] in result.stderr
