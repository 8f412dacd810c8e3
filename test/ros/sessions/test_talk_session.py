"""A spoken question goes to the graph as text, and the answer to it comes back as speech."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_model_server import listening, whole
from rclpy.node import Node
from short_folders import short_folder
from std_msgs.msg import String
from typer.testing import CliRunner, Result

from mmedge_ros.commands.main import app
from mmedge_ros.questions import QuestionError
from mmedge_ros.ros.messages import names, qos
from mmedge_ros.ros.sessions.own_context import spinning
from mmedge_ros.ros.sessions.talk_session import ask_graph

WAVE = b'RIFF\x24\x00\x00\x00WAVEfmt ' + bytes(64)
QUESTION = 'how many people are there now?'


@contextmanager
def answering(*answers: str) -> Iterator[list[str]]:
    """A node that gives these answers to every question; yields the questions."""
    asked: list[str] = []
    ended = threading.Event()
    with spinning(lambda context: Node('answers', context=context)) as (node, spin_once):
        publisher = node.create_publisher(String, names.ANSWERS, qos.RESULT)

        def answer(message: String) -> None:
            asked.append(message.data)
            for text in answers:
                publisher.publish(String(data=text))

        node.create_subscription(String, names.QUESTIONS, answer, qos.RESULT)

        def run() -> None:
            while not ended.is_set():
                spin_once()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield asked
        finally:
            ended.set()
            thread.join()


def serve(connection: socket.socket, _: threading.Event) -> None:
    """Hear the question in every sound, and speak."""
    request = connection.recv(1 << 16)
    is_sound = b'/audio/transcriptions' in request
    content = json.dumps({'text': f' {QUESTION}\n'}).encode() if is_sound else WAVE
    connection.sendall(whole('application/json' if is_sound else 'audio/wav', content))


def talk(*words: object) -> Result:
    return CliRunner().invoke(app, ['talk', *map(str, words)], env={'NO_COLOR': '1'})


@pytest.fixture
def wave(tmp_path: Path) -> Path:
    path = tmp_path / 'question.wav'
    path.write_bytes(WAVE)
    return path


def test_a_spoken_question_is_answered_in_words_and_in_speech(wave: Path, tmp_path: Path) -> None:
    out = tmp_path / 'answer.wav'
    other = 'is anybody there?\nYes.'
    right = f'{QUESTION}\n2 \x1b[31mpeople.\nthe model says: Two.\nmore\nand more'
    with (
        short_folder() as folder,
        listening(folder, serve) as endpoint,
        answering(other, right) as asked,
    ):
        address = f'unix:{endpoint.socket}'
        result = talk(wave, '--speech', address, '--out', out, '--within', 30)
    assert result.exit_code == 0, result.output
    assert asked == [QUESTION]
    lines = result.stdout.splitlines()
    assert lines[:3] == [QUESTION, '2 [31mpeople.', 'the model says: Two.']
    assert out.read_bytes() == WAVE
    assert sorted(path.name for path in tmp_path.iterdir()) == ['answer.wav', 'question.wav']


def test_where_the_graph_answers_nothing_it_is_said_by_the_deadline() -> None:
    with pytest.raises(QuestionError, match='start mmedge up --questions'):
        ask_graph(QUESTION, time.monotonic() + 0.3)
    with answering('something else\nYes.'):
        deadline = time.monotonic() + 3.0
        with pytest.raises(QuestionError, match='did not answer in time'):
            ask_graph(QUESTION, deadline)
        assert time.monotonic() < deadline + 1.0
