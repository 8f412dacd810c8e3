"""A Ray cluster is used where there is one; without the package there is one sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from bag_fixtures import recording, write_bag
from fake_policies import FACTS, run_fake
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth

from mmedge_ros.lab.comparison.plan import plan_comparison
from mmedge_ros.lab.comparison.ray_workers import compare_on_ray
from mmedge_ros.lab.comparison.task import ComparisonTask
from mmedge_ros.lab.evaluation import EvaluationError
from mmedge_ros.lab.evaluation.bundle_evaluation import NOMINAL
from mmedge_ros.lab.evaluation.bundle_under_test import flight_digest, open_bundle


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
        self.fails: Callable[[], None] = lambda: None

    def init(self, address: str, **_: Any) -> None:
        if address == 'auto':
            raise ConnectionError('Could not find any running Ray instance\nsecond line')
        self.addresses.append(address)
        self.open = True

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


@pytest.fixture(scope='module')
def task(tmp_path_factory: pytest.TempPathFactory) -> ComparisonTask:
    folder = tmp_path_factory.mktemp('comparison')
    bundle = open_bundle(write_tiny_bundle(folder / 'tiny'), NOMINAL)
    flight = write_bag(folder / 'flight', messages=recording_with_truth(0.8))
    cases = plan_comparison(FACTS, 'ours,non_blocking', 'stream').cases
    return ComparisonTask('flight', flight, flight_digest(flight), bundle, cases, folder, run_fake)


def test_outcomes_come_back_and_are_kept_here(
    ray: FakeRay, task: ComparisonTask, tmp_path: Path
) -> None:
    tasks = [replace(task, name=name, folder=tmp_path) for name in ('first', 'second')]
    reported: list[tuple[float, int]] = []
    compare_on_ray('local', tasks, lambda share, whole: reported.append((share, whole)))
    assert reported == [(0.0, 0), (0.5, 1), (1.0, 2)]
    assert all(not each.pending() for each in tasks)
    assert ray.addresses == ['local']
    assert not ray.open
    compare_on_ray('local', tasks)
    assert ray.addresses == ['local']


def test_a_flight_that_cannot_be_judged_is_one_sentence(
    ray: FakeRay, task: ComparisonTask, tmp_path: Path
) -> None:
    blind = write_bag(tmp_path / 'blind', messages=recording(0.5))
    with pytest.raises(EvaluationError, match='ground truth is needed'):
        compare_on_ray('local', [replace(task, name='blind', flight=blind, folder=tmp_path)])
    assert not ray.open


def test_a_worker_that_dies_is_one_sentence(
    ray: FakeRay, task: ComparisonTask, tmp_path: Path
) -> None:
    def die() -> None:
        raise ray.exceptions.RayError('the worker died\nwith a long trace')  # type: ignore[attr-defined]

    ray.fails = die
    with pytest.raises(EvaluationError, match=r'flight flight: its Ray task failed') as caught:
        compare_on_ray('local', [replace(task, folder=tmp_path)])
    assert 'long trace' not in str(caught.value)


@pytest.mark.parametrize('address', ['auto', '127.0.0.1:1', 'ray://127.0.0.1:1', 'x:9999999'])
def test_no_cluster_is_one_sentence(
    ray: FakeRay, task: ComparisonTask, tmp_path: Path, address: str
) -> None:
    with pytest.raises(EvaluationError, match=f'--ray {address}: no cluster answers there'):
        compare_on_ray(address, [replace(task, folder=tmp_path)])
    assert not ray.addresses


def test_without_the_package_is_one_sentence(
    task: ComparisonTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'ray', None)
    with pytest.raises(EvaluationError, match=r"pip install 'mmedge_ros\[ray\]'"):
        compare_on_ray('local', [replace(task, folder=tmp_path)])
