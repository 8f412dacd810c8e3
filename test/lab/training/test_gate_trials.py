"""From flights to certified thresholds."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from bag_fixtures import write_bag
from hand_made_gate_figures import flight
from hand_made_gates import always, gate
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth

from mmedge_lab.judging.bundle_evaluation import NOMINAL
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.training import TrainingError
from mmedge_lab.training.gate_training import GateFlight, collect, collected
from mmedge_lab.training.gate_trials import (
    THRESHOLDS,
    Table,
    Trial,
    across_splits,
    rival_trials,
    tried,
    try_all,
)
from mmedge_lab.training.gates.gate_report import BOTH, FIXED, GATE, REUSE, THINNED
from mmedge_lab.training.gates.loop_figures import plain_figures
from mmedge_ros.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration
from mmedge_ros.pipeline.pipeline_parameters import DECISION


@pytest.fixture(scope='module')
def task(tmp_path_factory: pytest.TempPathFactory) -> GateFlight:
    folder = tmp_path_factory.mktemp('gate')
    bundle = write_tiny_bundle(folder / 'tiny')
    bag = write_bag(folder / 'flight', messages=recording_with_truth(2.0))
    configuration = Configuration(
        1, 0, (ModalityConfiguration(CAMERA, 20.0, 'small'), ModalityConfiguration(RADAR, 20.0))
    )
    return GateFlight(
        bag,
        3,
        BundleUnderTest(bundle, NOMINAL, 'digest'),
        DECISION,
        (configuration,),
        folder / 'results',
    )


def test_samples_of_a_flight_are_collected_once(task: GateFlight) -> None:
    shares: list[float] = []
    collect(task, shares.append)
    first = task.samples_path.read_bytes()
    collect(task, shares.append)
    assert shares == [1.0, 1.0]
    assert task.samples_path.read_bytes() == first
    found = collected(task)
    assert len(found) > 5
    assert set(found.flights.tolist()) == {3}


def test_samples_that_are_damaged_are_said_to_be(task: GateFlight, tmp_path: Path) -> None:
    broken = GateFlight(task.path, 3, task.bundle, DECISION, task.configurations, tmp_path)
    with pytest.raises(TrainingError, match='run the same command again'):
        collected(broken)
    broken.samples_path.write_bytes(b'PK nonsense')
    with pytest.raises(TrainingError, match='run the same command again'):
        collected(broken)
    np.savez(broken.samples_path, questions=np.zeros((1, 2)), kept=[1.0], fields=['lead', 'x'])
    with pytest.raises(TrainingError, match='another version'):
        collected(broken)


def trials(value: float, *thresholds: float) -> list[Trial]:
    return [Trial(GATE, threshold, always(value), threshold) for threshold in thresholds]


def test_what_was_replayed_is_kept(task: GateFlight) -> None:
    own = trials(0.7, 0.9, 0.5)
    try_all(task, own, 'some', lambda _: None)
    found = tried(task, own, 'some')
    never, ever = (found[trial.key] for trial in own)
    assert never.loss.early == 0
    assert ever.loss.early > 0
    assert ever.encoded < never.encoded == never.reference_encoded
    assert (never.loss.iou, never.shown_lost) == (0.0, 0.0)
    # Another answer would be seen if the flight was replayed again.
    try_all(task, trials(0.0, 0.9, 0.5), 'some', lambda _: None)
    again = tried(task, own, 'some')
    assert again[own[1].key] == ever
    with pytest.raises(TrainingError, match='lacks'):
        tried(task, trials(0.7, 0.4), 'some')
    task.trials_path('cut').write_text('{"0.5')
    with pytest.raises(TrainingError, match='replay again'):
        tried(task, own, 'cut')


def test_a_flight_is_not_replayed_for_thresholds_that_nothing_reaches(task: GateFlight) -> None:
    shared = always(0.7)
    alone = [Trial(GATE, 0.95, shared, 0.95)]
    try_all(task, alone, 'one', lambda _: None)
    once = len(shared.evaluated)
    several = [Trial(GATE, t, shared, t) for t in (0.95, 0.9, 0.8)]
    try_all(task, several, 'three', lambda _: None)
    assert len(shared.evaluated) == 2 * once
    # What was not replayed is what a replay gives.
    found = tried(task, several, 'three')
    assert len({json.dumps(plain_figures(figures)) for figures in found.values()}) == 1


def test_thresholds_go_from_careful_to_careless() -> None:
    assert list(THRESHOLDS) == sorted(THRESHOLDS, reverse=True)
    assert THRESHOLDS[0] > 0.8
    assert min(THRESHOLDS) < FIXED
    assert any(abs(threshold - FIXED) < 1e-12 for threshold in THRESHOLDS)


def test_other_ways_to_save_are_replayed_beside_the_gate(task: GateFlight) -> None:
    rivals = rival_trials(gate())
    some = [next(t for t in rivals if t.rule == rule) for rule in (THINNED, REUSE)]
    try_all(task, some, 'rivals', lambda _: None)
    thinned, followed = tried(task, some, 'rivals').values()
    assert 0.5 < thinned.encoded / thinned.reference_encoded < 1.0
    assert followed.encoded / followed.reference_encoded < 0.7
    assert (thinned.loss.early, followed.loss.early) == (0, 0)
    assert {trial.rule for trial in rivals} == {THINNED, REUSE, BOTH}


def table(savings: list[float], losses: list[float]) -> Table:
    """Of each threshold: the share saved, and what is lost on average over 60 flights."""
    random = np.random.default_rng(5)
    harder = random.beta(3.0, 3.0, 60) * 2.0
    rows = [
        tuple(flight(lost * hard, share) for hard in harder)
        for share, lost in zip(savings, losses, strict=True)
    ]
    return Table((0.95, 0.9, 0.8, 0.7)[: len(rows)], tuple(rows), tuple(map(str, range(60))))


def test_what_one_half_certifies_mostly_holds_in_the_other() -> None:
    found = table([0.1, 0.2, 0.3, 0.4], [0.001, 0.004, 0.02, 0.06])
    results = across_splits(found, 0.01, splits=20)
    assert len(results) == 20
    held = [result for result in results if result.certificate.holds]
    assert len(held) >= 10
    assert {result.certificate.threshold for result in held} <= {0.95, 0.9}
    assert np.mean([r.loss.iou / r.loss.people <= 0.01 for r in held]) >= 0.8
    assert all(result.saved > 0.05 for result in held)
    assert across_splits(found, 0.01, splits=20) == results
    nothing = across_splits(table([0.4], [0.1]), 0.01)
    assert not any(r.certificate.holds or r.loss.early or r.saved for r in nothing)


def test_a_row_is_found_by_its_threshold() -> None:
    found = table([0.2, 0.4], [0.0, 0.0])
    assert found.at(0.9)[0].encoded == 180
    assert found.at(math.inf) == ()
    assert found.of(['0', '3']).flights == 2


def test_flights_of_one_seed_are_one_sample_of_a_certificate() -> None:
    found = table([0.2], [0.001])
    shared = found._replace(seeds=tuple(str(number // 6) for number in range(60)))
    apart, together = (some.certified(0.01) for some in (found, shared))
    assert (apart.seeds, together.seeds) == (60, 10)
    assert together.total.early == apart.total.early
    one = found._replace(seeds=('same',) * 60)
    assert not one.certified(0.01).holds


def test_a_split_parts_seeds_and_not_flights_of_a_seed() -> None:
    pairs = tuple(str(number // 2) for number in range(60))
    results = across_splits(table([0.2], [0.001])._replace(seeds=pairs), 0.01, splits=4)
    for result in results:
        assert result.certificate.seeds == 15
        # The others' 30 flights have 1000 samples each.
        assert result.loss.people == 30_000
