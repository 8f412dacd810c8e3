"""--view: which port, and whether a browser is opened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mmedge_ros.commands import live_view
from mmedge_ros.viewing.live_page import LivePage


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the command says; browsers opened are among it."""
    said: list[str] = []
    monkeypatch.setattr(live_view, 'say', said.append)
    monkeypatch.setattr(live_view.webbrowser, 'open', lambda url: said.append(f'opened {url}'))
    for name in ('DISPLAY', 'WAYLAND_DISPLAY', 'SSH_CONNECTION'):
        monkeypatch.delenv(name, raising=False)
    return said


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[LivePage]:
    monkeypatch.setattr('mmedge_ros.viewing.live_page._LOOK', 0.01)
    page = LivePage(18280)
    yield page
    page.close()


def test_without_the_option_there_is_no_page(said: list[str]) -> None:
    assert (live_view.open_view(False), said) == (0, [])


def test_the_address_is_said_once_the_page_answers(said: list[str], page: LivePage) -> None:
    live_view._announce(page.port)
    assert said[0] == f'live view: {page.address}'
    assert f'ssh -L {page.port}:127.0.0.1:{page.port}' in said[1]


@pytest.mark.parametrize('name', ['DISPLAY', 'WAYLAND_DISPLAY'])
def test_on_a_desktop_the_browser_is_opened(
    said: list[str], page: LivePage, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, ':0')
    live_view._announce(page.port)
    assert said[-1] == f'opened {page.address}'


def test_over_ssh_no_browser_is_opened(
    said: list[str], page: LivePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('DISPLAY', 'localhost:10.0')
    monkeypatch.setenv('SSH_CONNECTION', '10.0.0.2 50000 10.0.0.1 22')
    live_view._announce(page.port)
    assert not any('opened' in sentence for sentence in said)


def test_nothing_is_said_of_a_page_that_never_answers(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_view, '_PATIENCE', 0.0)
    live_view._announce(9)
    assert said == []
