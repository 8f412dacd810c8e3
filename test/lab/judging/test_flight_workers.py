"""Flights at once: what is done is kept, and nobody dies unnoticed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from bag_fixtures import write_bag
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth

from mmedge_lab import worker_processes
from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bundle_cases import CAMERA_ONLY, plan_cases
from mmedge_lab.judging.bundle_evaluation import NOMINAL
from mmedge_lab.judging.bundle_under_test import flight_digest, open_bundle
from mmedge_lab.judging.flight_cases import FlightTask, evaluate_flight
from mmedge_lab.judging.flight_workers import evaluate_flights


@pytest.fixture(scope='module')
def task(tmp_path_factory: pytest.TempPathFactory) -> FlightTask:
    folder = tmp_path_factory.mktemp('evaluation')
    bundle = open_bundle(write_tiny_bundle(folder / 'tiny'), NOMINAL)
    flight = write_bag(folder / 'flight', messages=recording_with_truth(0.6))
    plan = plan_cases(
        {'camera': ('small', 'large'), 'radar': ()}, ['large'], every_configuration=False
    )
    return FlightTask(flight, flight_digest(flight), bundle, plan.cases, folder / 'cases')


def at(task: FlightTask, folder: Path) -> FlightTask:
    return replace(task, folder=folder)


def test_every_case_of_a_flight_has_figures_afterwards(task: FlightTask, tmp_path: Path) -> None:
    done = at(task, tmp_path)
    shares: list[float] = []
    evaluate_flight(done, shares.append)
    assert done.pending() == ()
    assert all(done.result(case) is not None for case in done.cases)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_only_what_is_missing_is_done_again(task: FlightTask, tmp_path: Path) -> None:
    done = at(task, tmp_path)
    evaluate_flight(done)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob('*.npz')}
    lost = next(path for path in files if CAMERA_ONLY.name in path.name)
    lost.write_bytes(b'cut')
    reports: list[tuple[float, int]] = []
    evaluate_flights([done], 1, lambda share, whole: reports.append((share, whole)))
    assert reports[0] == (0.0, 0)
    assert reports[-1] == (1.0, 1)
    assert done.pending() == ()
    changed = {path for path, stamp in files.items() if path.stat().st_mtime_ns != stamp}
    assert changed == {lost}


def test_figures_of_another_bundle_or_flight_are_not_taken(
    task: FlightTask, tmp_path: Path
) -> None:
    done = at(task, tmp_path)
    evaluate_flight(done)
    other = replace(done, bundle=replace(done.bundle, digest='other'))
    assert other.pending() == done.cases
    assert replace(done, digest='other').pending() == done.cases


def test_a_killed_process_is_told_of_and_ends_the_others(
    task: FlightTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []
    begin = worker_processes._begin

    def begin_and_kill_the_first(*arguments):
        worker = begin(*arguments)
        begun.append(worker.process)
        if len(begun) == 1:
            worker.process.kill()
        return worker

    monkeypatch.setattr(worker_processes, '_begin', begin_and_kill_the_first)
    twin = shutil.copytree(task.flight, tmp_path / 'twin')
    tasks = [at(task, tmp_path), replace(task, flight=twin, folder=tmp_path)]
    with pytest.raises(EvaluationError, match=r'code -9 .*run the same command again'):
        evaluate_flights(tasks, 2)
    assert len(begun) == 2
    assert not any(process.is_alive() for process in begun)
