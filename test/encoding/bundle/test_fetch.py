"""Fetching a model from a server on this machine that does what servers do."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from tiny_detector import write_tiny_detector

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.fetch import install_model, is_installed
from mmedge_ros.encoding.bundle.model_bundle import load_bundle, open_detector
from mmedge_ros.encoding.bundle.registry import KnownModel


class Server(HTTPServer):
    """Gives ``content`` at /model; claims ``claimed`` bytes where that is set."""

    content = b''
    claimed: int | None = None
    requests = 0


class Answer(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.requests += 1
        if self.path == '/moved':
            self.send_response(302)
            self.send_header('Location', '/model')
            self.end_headers()
            return
        if self.path != '/model':
            self.send_error(404)
            return
        self.send_response(200)
        content, claimed = self.server.content, self.server.claimed
        self.send_header('Content-Length', str(len(content) if claimed is None else claimed))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    running = Server(('127.0.0.1', 0), Answer)
    running.content = write_tiny_detector(tmp_path / 'served.onnx').read_bytes()
    thread = threading.Thread(target=running.serve_forever, args=(0.01,))
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def model(server: Server) -> KnownModel:
    return KnownModel(
        'tiny',
        'a tiny detector',
        f'http://127.0.0.1:{server.server_port}/model',
        len(server.content),
        hashlib.sha256(server.content).hexdigest(),
        'Apache-2.0',
        'https://example.org/LICENSE',
        'nothing',
    )


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('no_proxy', '127.0.0.1')


def test_a_fetched_model_is_a_bundle_that_opens(model: KnownModel, tmp_path: Path) -> None:
    told: list[float] = []
    folder = install_model(model, tmp_path / 'models', on_progress=told.append)
    assert folder == tmp_path / 'models' / 'tiny'
    bundle = load_bundle(folder)
    assert (bundle.name, bundle.domain) == ('tiny', 'real')
    assert bundle.content['source'] == model.url
    assert 'Apache-2.0' in bundle.content['licence']
    assert open_detector(folder).labels == ('person',)
    assert is_installed(model, tmp_path / 'models')
    assert told[-1] == 1.0
    assert [p.name for p in (tmp_path / 'models').iterdir()] == ['tiny']


def refused(model: KnownModel, models: Path, words: str) -> None:
    with pytest.raises(EncodingError, match=words):
        install_model(model, models)
    assert list(models.iterdir()) == []
    assert not is_installed(model, models)


def test_another_file_of_the_same_size_is_thrown_away(
    server: Server, model: KnownModel, tmp_path: Path
) -> None:
    server.content = bytes(len(server.content))
    refused(model, tmp_path / 'models', 'another file than the one this registry knows')


@pytest.mark.parametrize('claims_more', [True, False])
def test_a_download_that_is_cut_is_thrown_away(
    server: Server, model: KnownModel, tmp_path: Path, claims_more: bool
) -> None:
    server.claimed = len(server.content) if claims_more else None
    server.content = server.content[:-100]
    refused(model, tmp_path / 'models', r'of \d+ bytes.*; try again')


def test_a_file_without_an_end_is_not_read_to_its_end(
    server: Server, model: KnownModel, tmp_path: Path
) -> None:
    server.content += bytes(50_000_000)
    refused(model, tmp_path / 'models', 'another file than')


def test_without_a_network_it_is_said_what_to_do_by_hand(
    server: Server, model: KnownModel, tmp_path: Path
) -> None:
    with socket.create_server(('127.0.0.1', 0)) as closed:
        nobody = closed.getsockname()[1]
    nowhere = replace(model, url=f'http://127.0.0.1:{nobody}/model.onnx')
    refused(nowhere, tmp_path / 'models', r'cannot be reached .*; by hand: .* --from FILE')
    assert server.requests == 0


def test_a_file_that_is_already_here_is_checked_and_used(
    server: Server, model: KnownModel, tmp_path: Path
) -> None:
    source = tmp_path / 'carried here.onnx'
    source.write_bytes(server.content)
    models = tmp_path / 'models'
    assert is_installed(model, install_model(model, models, source).parent)
    assert server.requests == 0
    source.write_bytes(b'x' * len(server.content))
    with pytest.raises(EncodingError, match='another file than'):
        install_model(model, models, source)
    assert is_installed(model, models)  # what was there before is still there
    with pytest.raises(EncodingError, match='cannot be read'):
        install_model(model, models, tmp_path / 'nothing')


def test_a_damaged_installation_is_noticed_and_replaced(model: KnownModel, tmp_path: Path) -> None:
    models = tmp_path / 'models'
    weights = install_model(model, models) / 'tiny.onnx'
    weights.write_bytes(b'')
    assert not is_installed(model, models)
    install_model(model, models)
    assert is_installed(model, models)
