"""From flights to certified thresholds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bag_fixtures import write_bag
from hand_made_questions import always
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth

from mmedge_ros.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration
from mmedge_ros.evaluation.bundle_evaluation import NOMINAL
from mmedge_ros.evaluation.bundle_under_test import BundleUnderTest
from mmedge_ros.pipeline.perception_pipeline import DECISION
from mmedge_ros.skipping.certificate import FlightOutcome
from mmedge_ros.training.errors import TrainingError
from mmedge_ros.training.gate_calibration import THRESHOLDS, across_splits
from mmedge_ros.training.gate_flights import (
    GateFlight,
    collect,
    collected,
    outcomes,
    try_thresholds,
)


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
    with pytest.raises(TrainingError, match='collect samples again'):
        collected(broken)
    broken.samples_path.write_bytes(b'PK nonsense')
    with pytest.raises(TrainingError, match='collect samples again'):
        collected(broken)
    np.savez(broken.samples_path, questions=np.zeros((1, 2)), agrees=[True], fields=['lead', 'x'])
    with pytest.raises(TrainingError, match='other questions'):
        collected(broken)


def test_outcomes_of_thresholds_are_kept(task: GateFlight) -> None:
    try_thresholds(task, always(0.7), (0.9, 0.5), 'some', lambda _: None)
    never, ever = outcomes(task, (0.9, 0.5), 'some')
    assert never.early == 0
    assert 0 < ever.early <= ever.windows == never.windows
    # Another answer would be seen if the flight was replayed again.
    try_thresholds(task, always(0.0), (0.9, 0.5), 'some', lambda _: None)
    assert outcomes(task, (0.5,), 'some') == [ever]
    with pytest.raises(TrainingError, match='lacks'):
        outcomes(task, (0.4,), 'some')
    task.outcomes_path('cut').write_text('{"0.5')
    with pytest.raises(TrainingError, match='replay again'):
        outcomes(task, (0.5,), 'cut')


def test_thresholds_go_from_careful_to_careless() -> None:
    assert list(THRESHOLDS) == sorted(THRESHOLDS, reverse=True)
    assert THRESHOLDS[0] > 0.99
    assert THRESHOLDS[-1] < 0.5


def test_what_one_half_certifies_mostly_holds_in_the_other() -> None:
    random = np.random.default_rng(5)
    rates = random.beta(3.0, 100.0, 60)
    thresholds = (0.95, 0.9, 0.8, 0.7)
    table = [
        [FlightOutcome(100, early, int(random.binomial(early, min(k * r, 1.0)))) for r in rates]
        for k, early in ((0.3, 20), (1.0, 40), (3.0, 60), (9.0, 80))
    ]
    results = across_splits(table, thresholds, 0.05, splits=20)
    assert len(results) == 20
    held = [result for result in results if result.certificate.holds]
    assert len(held) >= 10
    assert {result.certificate.threshold for result in held} <= {0.95, 0.9}
    assert np.mean([result.disagreement <= 0.05 for result in held]) >= 0.8
    assert across_splits(table, thresholds, 0.05, splits=20) == results
    nothing = across_splits([[FlightOutcome(100, 50, 30)] * 20], (0.9,), 0.05)
    assert not any(result.certificate.holds or result.early for result in nothing)
