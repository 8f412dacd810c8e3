"""Ray itself, on this machine: every command gives what it gives without a cluster.

Ray is an optional extra. How it is installed for these tests: docs/evaluation.md.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from bag_fixtures import write_bag
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth
from typer.testing import CliRunner

from mmedge_lab.ray_workers import do_works_on_ray
from mmedge_lab.simulation.flight_set import PlannedFlight, simulate_set
from mmedge_ros import MmedgeError
from mmedge_ros.commands.main import app

ray = pytest.importorskip(
    'ray', reason='Ray is not installed: .venv/bin/pip install -r requirements/ray.txt'
)
# Starting a cluster takes 10 s, on a machine with other work a minute.
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope='module')
def cluster() -> Iterator[str]:
    """Address of a cluster on this machine, which is stopped afterwards."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={'num_cpus': 2, 'include_dashboard': False}
    )
    yield cluster.address
    cluster.shutdown()


@pytest.fixture(scope='module')
def flights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('set')
    for name in ('first', 'second'):
        write_bag(folder / name, messages=recording_with_truth(0.8))
    return folder


@pytest.fixture(scope='module')
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_bundle(tmp_path_factory.mktemp('bundle') / 'tiny')


def run(*arguments: object) -> None:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output


def files(folder: Path, pattern: str) -> dict[str, bytes]:
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob(pattern)
    }
    assert found
    return found


def die_once(marks: Path, name: str, folder: Path) -> None:
    """Is killed in the first process that does it, as by a machine short of memory."""
    mark = marks / name
    if not mark.exists():
        mark.write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    (folder / 'file').write_text(f'{name}, after {mark.read_text()}')


def test_what_a_killed_worker_did_is_done_again_elsewhere(cluster: str, tmp_path: Path) -> None:
    # The workers cannot import this module.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    works = {name: partial(die_once, tmp_path, name) for name in ('one', 'two')}
    kept: dict[str, dict[str, bytes]] = {}
    do_works_on_ray(cluster, works, (MmedgeError,), kept.__setitem__)
    expected = {
        name: {'file': f'{name}, after {(tmp_path / name).read_text()}'.encode()} for name in works
    }
    assert kept == expected


def test_a_set_is_simulated_as_on_one_machine(cluster: str, tmp_path: Path) -> None:
    planned = [PlannedFlight(f'flight_{seed}', 'park_day_middle', seed, 0.5) for seed in (1, 2)]
    here, there = tmp_path / 'here', tmp_path / 'there'
    simulate_set(here, planned)
    reports: list[float] = []
    simulate_set(there, planned, on_progress=lambda p: reports.append(p.share), ray=cluster)
    assert files(there, '*.*') == files(here, '*.*')
    assert (reports[0], reports[-1]) == (0.0, 1.0)


def test_evaluate_bundle_has_the_cases_of_one_machine(
    cluster: str, flights: Path, bundle: Path, tmp_path: Path
) -> None:
    here, there = tmp_path / 'here', tmp_path / 'there'
    common = ('lab', 'evaluate-bundle', bundle, flights, '--configurations', 'full')
    run(*common, '--jobs', 1, '--out', here)
    run(*common, '--ray', cluster, '--out', there)
    assert files(there, '*.npz') == files(here, '*.npz')


def test_evaluate_has_the_outcomes_of_one_machine(
    cluster: str, flights: Path, bundle: Path, tmp_path: Path
) -> None:
    here, there = tmp_path / 'here', tmp_path / 'there'
    common = ('lab', 'evaluate', flights, '--bundle', bundle, '--policies', 'ours', '--no-timing')
    limits = ('--limits', '50ms', '--shares', '100')
    run(*common, *limits, '--jobs', 1, '--out', here)
    run(*common, *limits, '--ray', cluster, '--out', there)
    assert files(there, '*.npz') == files(here, '*.npz')


def test_replay_set_has_the_decisions_of_one_machine(
    cluster: str, flights: Path, bundle: Path, tmp_path: Path
) -> None:
    profile = tmp_path / 'profile.json'
    run(
        'replay',
        flights / 'first',
        '--detector',
        bundle,
        '--out',
        tmp_path / 'once',
        '--save-profile',
        profile,
    )
    here, there = tmp_path / 'here', tmp_path / 'there'
    common = (
        'lab',
        'replay-set',
        flights,
        '--detector',
        bundle,
        '--profile',
        profile,
        '--no-pictures',
    )
    run(*common, '--out', here)
    run(*common, '--ray', cluster, '--out', there)
    assert files(there, 'decisions.jsonl') == files(here, 'decisions.jsonl')
