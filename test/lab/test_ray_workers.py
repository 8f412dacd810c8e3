"""A Ray cluster is used where there is one; without the package there is one sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from mmedge_lab import ray_workers
from mmedge_lab.judging import EvaluationError
from mmedge_lab.ray_workers import ClusterError, do_works_on_ray
from mmedge_lab.worker_processes import WorkError
from mmedge_ros import MmedgeError


class _Reference:
    """Stands for what a task will have found."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.function, self.arguments = function, arguments


class FakeRay(ModuleType):
    """Does each task when it is fetched, the newest first; notes what it was asked."""

    def __init__(self) -> None:
        super().__init__('ray')
        self.exceptions = ModuleType('ray.exceptions')
        self.exceptions.RayError = type('RayError', (Exception,), {})  # type: ignore[attr-defined]
        self.addresses: list[str] = []
        self.open = False
        self.processors = 2.0
        self.fails: Callable[[], None] = lambda: None

    def init(self, address: str, **_: Any) -> None:
        if address == 'auto':
            raise ConnectionError('Could not find any running Ray instance\nsecond line')
        self.addresses.append(address)
        self.open = True

    def cluster_resources(self) -> dict[str, float]:
        return {'CPU': self.processors} if self.processors else {}

    def shutdown(self) -> None:
        self.open = False

    def remote(self, **_: Any) -> Any:
        return lambda function: SimpleNamespace(remote=partial(_Reference, function))

    def wait(self, waiting: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        return waiting[-num_returns:], waiting[:-num_returns]

    def get(self, ready: Any) -> Any:
        assert self.open
        self.fails()
        return ready.function(*ready.arguments)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, 'ray', fake)
    monkeypatch.setitem(sys.modules, 'ray.exceptions', fake.exceptions)
    return fake


def write_name(name: str, folder: Path) -> None:
    (folder / 'below').mkdir()
    (folder / 'below' / 'second').write_text(name)
    (folder / 'first').write_bytes(b'\0')


def refuse(folder: Path) -> None:
    raise EvaluationError('ground truth is needed')


def works(*names: str) -> dict[str, Any]:
    return {name: partial(write_name, name) for name in names}


def keep_nothing(name: str, files: dict[str, bytes]) -> None:
    raise AssertionError(name)


def test_what_works_wrote_comes_back(ray: FakeRay) -> None:
    kept: dict[str, dict[str, bytes]] = {}
    do_works_on_ray('local', works('one', 'two'), (MmedgeError,), kept.__setitem__)
    assert kept == {
        name: {'below/second': name.encode(), 'first': b'\0'} for name in ('one', 'two')
    }
    assert ray.addresses == ['local']
    assert not ray.open
    do_works_on_ray('local', {}, (MmedgeError,), kept.__setitem__)
    assert ray.addresses == ['local']


def test_a_work_that_cannot_be_done_is_one_sentence(ray: FakeRay) -> None:
    with pytest.raises(WorkError, match=r'^ground truth is needed$') as caught:
        do_works_on_ray('local', {'blind': refuse}, (MmedgeError,), keep_nothing)
    assert caught.value.name == 'blind'
    assert not ray.open


def test_a_worker_that_dies_again_and_again_is_one_sentence(ray: FakeRay) -> None:
    def die() -> None:
        raise ray.exceptions.RayError('the worker died\nwith a long trace')  # type: ignore[attr-defined]

    ray.fails = die
    with pytest.raises(WorkError, match=r'^its Ray task failed \(the worker died\)') as caught:
        do_works_on_ray('local', works('one'), (MmedgeError,), keep_nothing)
    assert 'long trace' not in str(caught.value)


def test_other_software_on_the_cluster_is_refused(
    ray: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = iter(('here', 'there'))
    monkeypatch.setattr(ray_workers, '_software', lambda: next(digests))
    with pytest.raises(WorkError, match='differs from the one here; install the same'):
        do_works_on_ray('local', works('one'), (MmedgeError,), keep_nothing)


@pytest.mark.parametrize('address', ['auto', '127.0.0.1:1', 'ray://127.0.0.1:1', 'x:9999999'])
def test_no_cluster_is_one_sentence(ray: FakeRay, address: str) -> None:
    with pytest.raises(ClusterError, match=f'--ray {address}: no cluster answers there'):
        do_works_on_ray(address, works('one'), (MmedgeError,), keep_nothing)
    assert not ray.addresses


def test_a_cluster_without_a_processor_is_one_sentence(ray: FakeRay) -> None:
    ray.processors = 0.0
    with pytest.raises(ClusterError, match='the cluster has no processor; add a machine'):
        do_works_on_ray('local', works('one'), (MmedgeError,), keep_nothing)
    assert not ray.open


def test_without_the_package_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, 'ray', None)
    with pytest.raises(ClusterError, match=r"pip install 'mmedge_ros\[ray\]'"):
        do_works_on_ray('local', works('one'), (MmedgeError,), keep_nothing)
