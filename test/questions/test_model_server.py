"""A server of a user's own model is loaded, asked and released, and leaves nothing behind."""

from __future__ import annotations

import importlib.util
import os
import select
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from fake_model_process import COMMAND
from fake_model_server import short_folder
from tiny_gguf import write_tiny_gguf, write_tiny_projector

from mmedge_ros.questions.model_client import ModelError, ask_endpoint
from mmedge_ros.questions.model_prompt import PromptFacts, PromptPicture, messages_for
from mmedge_ros.questions.model_server import ModelFiles, ModelServer

SUPPORT = Path(__file__).resolve().parents[1] / 'support'
# A server gives way to all else, and a machine may be busy.
PATIENCE = 120.0
needs_xllamacpp = pytest.mark.skipif(
    importlib.util.find_spec('xllamacpp') is None, reason='xllamacpp is not installed'
)


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as made:
        yield made


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where folders of servers are made; they must all be gone in the end."""
    before = set(psutil.Process().children())
    with short_folder() as folder:
        monkeypatch.setattr(tempfile, 'tempdir', str(folder))
        yield folder
        assert gone(*set(psutil.Process().children()) - before)
        assert list(folder.iterdir()) == []


def soon() -> float:
    return time.monotonic() + PATIENCE


def gguf(folder: Path) -> ModelFiles:
    path = folder / 'own.gguf'
    path.write_bytes(b'GGUF and more')
    return ModelFiles(path)


def behaving(behaviour: str, folder: Path) -> ModelServer:
    return ModelServer(gguf(folder), command=(*COMMAND, behaviour))


def gone(*processes: psutil.Process, patience: float = PATIENCE) -> bool:
    """Wait until processes have ended, whether or not somebody has asked how."""
    for process in processes:
        with suppress(ProcessLookupError):
            number = os.pidfd_open(process.pid)
            try:
                if not select.select([number], [], [], patience)[0]:
                    return False
            finally:
                os.close(number)
    return True


def test_a_server_is_loaded_asked_and_released(tmp_path: Path, temporary: Path) -> None:
    with behaving('answers', tmp_path) as server:
        endpoint = server.start(soon())
        said = ask_endpoint(endpoint, messages_for('who?', PromptFacts()), soon())
        assert said.text == 'A man in red.'
        assert server.memory() > 0
        assert server.running() == endpoint
        process = psutil.Process(server.pid)
        keeper = process.parent()
    assert gone(process, keeper)
    assert (server.running(), server.memory()) == (None, 0)


def test_a_server_has_the_lowest_priority_and_a_private_folder(
    tmp_path: Path, temporary: Path
) -> None:
    with behaving('answers', tmp_path) as server:
        endpoint = server.start(soon())
        folder = Path(endpoint.socket).parent
        assert folder.parent == temporary
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert psutil.Process(server.pid).nice() == 19
        adjusted = Path(f'/proc/{server.pid}/oom_score_adj').read_text()
        assert adjusted.strip() == '1000'
        # Where sessions share the processor by halves, a nice one in another is not nice.
        assert os.getsid(server.pid) == os.getsid(0)


def test_children_of_a_server_go_with_it(tmp_path: Path, temporary: Path) -> None:
    with behaving('has children', tmp_path) as server:
        server.start(soon())
        (child,) = psutil.Process(server.pid).children()
    assert gone(child)


@pytest.mark.parametrize('victim', ['asker', 'keeper'])
def test_a_server_does_not_outlive_who_started_it(
    tmp_path: Path, folder: Path, victim: str
) -> None:
    program = SUPPORT / 'own_model_until_killed.py'
    environment = {**os.environ, 'TMPDIR': str(folder)}
    environment['PYTHONPATH'] = os.pathsep.join([str(SUPPORT.parents[1]), str(SUPPORT)])
    asker = subprocess.Popen(
        [sys.executable, str(program), str(gguf(tmp_path).model)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert asker.stdout is not None
        server = psutil.Process(int(asker.stdout.readline()))
        keeper = server.parent()
        assert keeper is not None
        if victim == 'keeper':
            keeper.kill()
            assert gone(server)
            return
    finally:
        asker.kill()
        asker.communicate()
    assert gone(server, keeper)
    assert list(folder.iterdir()) == []


def test_a_keeper_that_hangs_does_not_cost_the_time_of_who_waits(
    tmp_path: Path, temporary: Path
) -> None:
    server = behaving('answers', tmp_path)
    server.start(soon())
    process = psutil.Process(server.pid)
    keeper = process.parent()
    assert keeper is not None
    keeper.suspend()
    os.waitid(os.P_PID, keeper.pid, os.WSTOPPED | os.WNOWAIT)
    begun = time.monotonic()
    server.stop(begun + 0.05)
    assert time.monotonic() < begun + PATIENCE / 4
    assert not gone(process, patience=0.0)
    # What would have gone later goes now.
    keeper.resume()
    assert gone(process, keeper)


@pytest.mark.parametrize(
    ('behaviour', 'words'),
    [
        ('ends', 'the model server ended while own.gguf loaded'),
        ('is killed', 'killed, as it is where memory runs out while own.gguf loaded'),
        ('breaks down', r'broke down \(signal 6\) while own.gguf loaded'),
        ('has a problem', '^no such luck$'),
        ('babbles', 'sent more than a status'),
    ],
)
def test_a_server_that_does_not_load_says_why(
    tmp_path: Path, temporary: Path, behaviour: str, words: str
) -> None:
    server = behaving(behaviour, tmp_path)
    with pytest.raises(ModelError, match=words):
        server.start(soon())
    assert server.running() is None
    assert (server.pid, list(temporary.iterdir())) == (0, [])


def test_loading_ends_at_the_deadline(tmp_path: Path, temporary: Path) -> None:
    server = behaving('never loads', tmp_path)
    deadline = time.monotonic() + 0.3
    with pytest.raises(ModelError, match=r'own\.gguf was not loaded by the deadline'):
        server.start(deadline)
    assert time.monotonic() < deadline + PATIENCE / 4


def test_files_that_are_no_models_are_refused_before_anything_starts(
    tmp_path: Path, temporary: Path
) -> None:
    text, huge = tmp_path / 'text.gguf', tmp_path / 'huge.gguf'
    text.write_text('hello')
    huge.write_bytes(b'GGUF')
    os.truncate(huge, 1 << 42)
    sound = gguf(tmp_path).model
    for files, words in (
        (ModelFiles(tmp_path / 'none.gguf'), r'none\.gguf: No such file'),
        (ModelFiles(tmp_path), 'Is a directory'),
        (ModelFiles(text), r'text\.gguf: no GGUF file'),
        (ModelFiles(sound, text), r'text\.gguf: no GGUF file'),
        (ModelFiles(huge), r'huge\.gguf needs more than 4398\.0 GB'),
    ):
        with pytest.raises(ModelError, match=words):
            ModelServer(files, command=(*COMMAND, 'answers')).start(soon())


def test_a_temporary_folder_that_is_too_deep_for_a_socket_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ('d' * 90)
    deep.mkdir()
    monkeypatch.setattr(tempfile, 'tempdir', str(deep))
    with pytest.raises(ModelError, match='set TMPDIR to a shorter one'):
        behaving('answers', tmp_path).start(soon())
    assert list(deep.iterdir()) == []


def test_where_xllamacpp_is_missing_the_remedy_is_named(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'xllamacpp.py').write_text("raise ImportError('no wheel')")
    path = os.pathsep.join([str(tmp_path), str(SUPPORT.parents[1])])
    monkeypatch.setenv('PYTHONPATH', path)
    with pytest.raises(ModelError, match=r'imported \(no wheel\): pip install xllamacpp'):
        ModelServer(gguf(tmp_path)).start(soon())


def test_a_broken_file_is_said_to_be_one(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec('xllamacpp') is None:
        (tmp_path / 'xllamacpp.py').write_text("raise RuntimeError('not loaded')")
        path = os.pathsep.join([str(tmp_path), str(SUPPORT.parents[1])])
        monkeypatch.setenv('PYTHONPATH', path)
    with pytest.raises(ModelError, match=r'own\.gguf cannot be loaded; check that the file'):
        ModelServer(gguf(tmp_path)).start(soon())


@needs_xllamacpp
def test_a_real_model_answers_in_the_form_that_is_asked_for(
    tmp_path: Path, temporary: Path
) -> None:
    files = ModelFiles(
        write_tiny_gguf(tmp_path / 'tiny.gguf'), write_tiny_projector(tmp_path / 'eye.gguf')
    )
    jpeg = _jpeg()
    messages = messages_for(
        'who <|is|> it?', PromptFacts('two people'), [PromptPicture('track 7', jpeg)]
    )
    with ModelServer(files, threads=1) as server:
        endpoint = server.start(soon())
        said = ask_endpoint(endpoint, messages, soon(), most_tokens=3000)
        assert 0.0 < said.first_token < said.seconds
        assert said.tokens > len(said.text) > 0
        with pytest.raises(ModelError, match='cut off at the deadline'):
            ask_endpoint(endpoint, messages, time.monotonic() + 0.1, most_tokens=3000)
        process = psutil.Process(server.pid)
        assert process.nice() == 19
        assert process.ionice().ioclass == psutil.IOPRIO_CLASS_IDLE
    assert gone(process)


def _jpeg() -> bytes:
    import cv2
    import numpy as np

    return cv2.imencode('.jpg', np.full((48, 64, 3), 90, np.uint8))[1].tobytes()
