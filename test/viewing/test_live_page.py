"""The page's server: who may read, when it works, and what a bad browser cannot do."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tries import tries

from mmedge_ros.viewing import ViewingError, live_page
from mmedge_ros.viewing.live_page import HOST, LivePage, free_port

GREY = np.full((48, 64, 3), 90, np.uint8)
PATIENCE = 10.0


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[LivePage]:
    monkeypatch.setattr(live_page, '_LOOK', 0.01)
    page = LivePage(18080)
    yield page
    page.close()


def eventually(condition: Callable[[], Any]) -> None:
    """Wait for what another thread is about to do."""
    end, pause = time.monotonic() + PATIENCE, threading.Event()
    while not condition():
        assert time.monotonic() < end
        pause.wait(0.005)


def request(page: LivePage, path: str, **headers: str) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection(HOST, page.port, timeout=PATIENCE)
    connection.request('GET', path, headers={k.replace('_', '-'): v for k, v in headers.items()})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


class Browser:
    """Looks at the states of a page."""

    def __init__(self, page: LivePage) -> None:
        self._connection = HTTPConnection(HOST, page.port, timeout=PATIENCE)
        self._connection.request('GET', '/states')
        self.answer = self._connection.getresponse()

    def state(self) -> Any:
        """Return the next state."""
        while True:
            line = self.answer.readline()
            if line.startswith(b'data: '):
                return json.loads(line[6:])

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


@contextmanager
def looking(page: LivePage) -> Iterator[Browser]:
    browser = Browser(page)
    yield browser
    browser.close()


def test_the_page_needs_nothing_from_elsewhere(page: LivePage) -> None:
    answer, html = request(page, '/')
    assert answer.status == 200
    assert "default-src 'self'" in answer.headers['Content-Security-Policy']
    paths = re.findall(r'(?:src|href)="([^"]+)"', html.decode())
    scripts = [path for path in paths if not path.startswith('data:')]
    for path in [*scripts, 'scene.js']:
        answer, text = request(page, f'/{path}')
        assert answer.status == 200
        assert not re.search(rb'https?://', text)


def test_every_element_a_script_fills_is_in_the_page() -> None:
    folder = Path(live_page.__file__).parent / 'page'
    ids = set(re.findall(r'\bid="([\w-]+)"', (folder / 'page.html').read_text()))
    assert set(re.findall(r"\bat\('([\w-]+)'\)", (folder / 'page.js').read_text())) <= ids


def test_states_reach_every_browser_that_looks(page: LivePage) -> None:
    with looking(page) as one, looking(page) as other:
        eventually(lambda: page.watchers == 2)
        page.update({'number': 5})
        assert (one.state(), other.state()) == ({'number': 5}, {'number': 5})
    eventually(lambda: page.watchers == 0)


def test_a_browser_that_stalls_delays_nothing_and_is_dropped(
    page: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_page._Handler, 'timeout', 2.0)
    with looking(page), looking(page) as other:
        eventually(lambda: page.watchers == 2)
        begun = time.monotonic()
        for number in range(100):
            page.update({'number': number, 'filling': 'x' * 200_000})
        assert time.monotonic() - begun < 5.0
        while other.state()['number'] < 99:
            pass
        eventually(lambda: page.watchers == 1)


def test_a_picture_is_drawn_once_and_only_for_those_who_want_it(page: LivePage) -> None:
    calls: list[int] = []
    page.show(lambda: calls.append(1) or GREY)
    assert calls == []
    answer, data = request(page, '/picture?after=0')
    again, _ = request(page, '/picture?after=0')
    assert len(calls) == 1
    assert answer.headers['Picture-Number'] == again.headers['Picture-Number'] == '1'
    shown = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert shown is not None
    assert shown.shape == GREY.shape


def test_a_picture_that_cannot_be_drawn_is_passed_over(page: LivePage) -> None:
    page.show(lambda: None)
    answer, data = request(page, '/picture?after=0')
    assert (answer.status, data, answer.headers['Picture-Number']) == (204, b'', '1')


def test_without_a_newer_picture_the_answer_is_empty(
    page: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_page, '_HEARTBEAT', 0.05)
    assert request(page, '/picture?after=0')[0].status == 204
    page.show(lambda: GREY)
    assert request(page, '/picture?after=1')[0].status == 204


@pytest.mark.parametrize(
    ('headers', 'status'),
    [
        ({'Host': 'localhost:9999'}, 200),
        ({'Host': '[::1]:8080'}, 200),
        ({'Host': 'evil.example'}, 403),
        ({'Host': 'evil.example:8080'}, 403),
        ({'Sec_Fetch_Site': 'same-origin'}, 200),
        ({'Sec_Fetch_Site': 'cross-site', 'Sec_Fetch_Mode': 'no-cors'}, 403),
        ({'Sec_Fetch_Site': 'same-site', 'Sec_Fetch_Mode': 'cors'}, 403),
        ({'Sec_Fetch_Site': 'cross-site', 'Sec_Fetch_Mode': 'navigate'}, 200),
    ],
)
def test_other_pages_in_the_same_browser_cannot_read_pictures(
    page: LivePage, headers: dict[str, str], status: int
) -> None:
    page.show(lambda: GREY)
    answer, _ = request(page, '/picture?after=0', **headers)
    assert answer.status == status


def test_a_taken_port_is_passed_over(page: LivePage) -> None:
    assert free_port(page.port) > page.port
    other = LivePage(page.port)
    assert other.port > page.port
    other.close()


def test_no_free_port_is_said_with_a_remedy(
    page: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_page, '_PORTS_TRIED', 1)
    for attempt in (LivePage, free_port):
        with pytest.raises(ViewingError, match=r'no free port .* name another port'):
            attempt(page.port)


def test_only_this_machine_can_reach_it(page: LivePage) -> None:
    assert page.address == f'http://127.0.0.1:{page.port}'
    assert page._server.socket.getsockname()[0] == '127.0.0.1'


def test_more_connections_than_browsers_make_are_refused(
    page: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_page, '_MOST_CONNECTIONS', 2)
    small = LivePage(page.port)
    held = [socket.create_connection((HOST, small.port)) for _ in range(2)]
    for connection in held:
        connection.sendall(b'GET /states HTTP/1.1\r\nHost: localhost\r\n\r\n')
    eventually(lambda: small.watchers == 2)
    with socket.create_connection((HOST, small.port)) as third:
        third.settimeout(PATIENCE)
        assert third.recv(1) == b''
    for connection in held:
        connection.close()
    small.close()


def test_a_request_that_comes_drop_by_drop_is_cut_off(
    page: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_page._Handler, 'timeout', 0.3)
    with socket.create_connection((HOST, page.port)) as slow:
        pause = threading.Event()

        def is_cut_off() -> bool:
            try:
                slow.sendall(b'G')
            except OSError:
                return True
            return pause.wait(0.05)

        eventually(is_cut_off)
    assert request(page, '/')[0].status == 200


# Hypothesis shows what it draws from, so what is huge comes later.
HUGE = (
    (b'/picture?many', b'/picture?' + b'after=1&' * 3000),
    (b'/deep', b'/' + b'a/' * 40_000),
    (b': long', b': ' + b'x' * 70_000),
)
METHODS = st.sampled_from(
    ['GET', 'GET', 'GET', 'get', 'HEAD', 'POST', 'PUT', 'CONNECT', 'X' * 300]
)
PATHS = st.one_of(
    st.sampled_from(
        [
            *('/', '/page.css', '/states', '/picture', '//', '*', '', '/../../../../etc/passwd'),
            *('/%2e%2e/%2e%2e/etc/passwd', '/..%2f..%2fetc/passwd', '/page.js/../live_page.py'),
            *('/\\..\\live_page.py', 'file:///etc/passwd', 'http://[::1', '/picture?after=²'),
            *('/page.js%00.html', '/picture?many', '/deep', '/picture?after=%D9%A3'),
        ]
    ),
    st.text(st.characters(max_codepoint=255), max_size=60),
)
NAMES = 'Host Content-Length Expect Transfer-Encoding Range Connection X'
HEADERS = st.lists(
    st.tuples(
        st.sampled_from([*NAMES.split(), '']),
        st.one_of(
            st.sampled_from(['localhost', '-1', '9' * 30, '100-continue', 'chunked', 'long']),
            st.text(st.characters(max_codepoint=255), max_size=30),
        ),
    ),
    max_size=4,
)
REQUESTS = st.one_of(
    st.binary(max_size=300),
    st.builds(
        lambda method, path, version, headers, end, body: (
            f'{method} {path} {version}\r\nHost: localhost\r\n'.encode('latin-1')
            + ''.join(f'{name}: {value}\r\n' for name, value in headers).encode('latin-1')
            + end
            + body
        ),
        METHODS,
        PATHS,
        st.sampled_from(['HTTP/1.1', 'HTTP/1.0', 'HTTP/9.9', 'HTTP/1.1.1', '', 'HTTP/²']),
        HEADERS,
        st.sampled_from([b'\r\n', b'', b'\n\n']),
        st.binary(max_size=60),
    ),
)


@settings(max_examples=tries(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests=st.lists(REQUESTS, min_size=1, max_size=3), reads=st.booleans())
def test_absurd_requests_get_nothing_but_the_page_and_end_nothing(
    page: LivePage, capfd: pytest.CaptureFixture[str], requests: list[bytes], reads: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_page, '_HEARTBEAT', 0.01)
        patch.setattr(live_page._Handler, 'timeout', 0.2)
        for hostile in requests:
            for short, huge in HUGE:
                hostile = hostile.replace(short, huge)
            with socket.create_connection((HOST, page.port)) as connection, suppress(OSError):
                connection.settimeout(0.05)
                connection.sendall(hostile)
                received = connection.recv(65536) if reads else b''
                assert b'root:' not in received
                assert b'LivePage' not in received
        eventually(lambda: answers(page))
    assert 'Traceback' not in ''.join(capfd.readouterr())


def answers(page: LivePage) -> bool:
    """Whether the page is served; while too many connections are open, one more is refused."""
    with suppress(OSError, HTTPException):
        return request(page, '/')[0].status == 200
    return False


def test_many_clients_that_say_nothing_keep_nobody_out_for_long(
    page: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_page._Handler, 'timeout', 0.3)
    begun = time.monotonic()
    silent = [socket.create_connection((HOST, page.port)) for _ in range(200)]
    eventually(lambda: answers(page))
    assert time.monotonic() - begun < 5.0
    for connection in silent:
        connection.close()
