"""What rivals learn from, and that they learn it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_encoded_flight import encoded_flight
from hand_made_rivals import choices
from hand_made_truth import BOX, at, film, moved, somebody, track
from hand_made_units import MS
from tiny_bundle import write_tiny_bundle

from mmedge_ros.data_types import CAMERA, Box, Decision, UnitFeatures
from mmedge_ros.lab.evaluation.bundle_under_test import BundleUnderTest
from mmedge_ros.lab.policies.imputation import BEFORE_FIELDS
from mmedge_ros.lab.policies.rivals_folder import choices_of
from mmedge_ros.lab.policies.seen import SEEN_FIELDS
from mmedge_ros.lab.policies.stated_profile import STATED
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.rivals.network_fit import (
    FitSettings,
    fit_network,
    found_and_moved,
    squared,
    yes_or_no,
)
from mmedge_ros.lab.training.rivals.picture_samples import picture_samples
from mmedge_ros.lab.training.rivals.rival_training import (
    RivalSettings,
    area_under_curve,
    judge_rivals,
    train_rivals,
)
from mmedge_ros.lab.training.rivals.samples import (
    FlightSamples,
    GatingSamples,
    ImputationSamples,
    SelectionSamples,
    joined,
    keep_samples,
    kept_samples,
)
from mmedge_ros.lab.training.rivals.window_quality import smoothed, window_quality
from mmedge_ros.lab.training.rivals.window_samples import WindowRuns

STRONG, DRIFT = SEEN_FIELDS.index('strong'), SEEN_FIELDS.index('drift')
ONWARD = BEFORE_FIELDS.index('onward_right')
FEW = RivalSettings(FitSettings(epochs=20, folds=3), FitSettings(epochs=20, folds=3))
LEVELS = choices('small', 'medium', 'large')


def samples(count: int = 900, seed: int = 0, first: int = 0) -> FlightSamples:
    """Resting is a loss where much moves; people need better levels; everybody goes on."""
    random = np.random.default_rng(seed)
    flights = first + np.arange(count) % 6
    seen = random.normal(size=(count, len(SEEN_FIELDS)))
    no_loss = seen[:, DRIFT] + 0.3 * random.normal(size=count) < 0.0
    shortfall = np.clip(0.1 * seen[:, STRONG], 0.0, 1.0)
    quality = 0.8 - np.outer(shortfall, (1.0, 0.3, 0.0))
    before = random.normal(size=(count, len(BEFORE_FIELDS)))
    before[:, ONWARD : ONWARD + 4] *= 0.2
    displaced = before[:, ONWARD : ONWARD + 4]
    boxes = np.tile(np.array([100.0, 100.0, 150.0, 220.0]), (count, 1))
    middle = 125.0 + 50.0 * displaced[:, 0], 160.0 + 120.0 * displaced[:, 1]
    half = 25.0 * np.exp(displaced[:, 2]), 60.0 * np.exp(displaced[:, 3])
    truths = np.stack(
        [middle[0] - half[0], middle[1] - half[1], middle[0] + half[0], middle[1] + half[1]], 1
    )
    found = before[:, BEFORE_FIELDS.index('score')] > -0.5
    return FlightSamples(
        GatingSamples(seen, no_loss, np.where(no_loss, 0.0, 0.3), no_loss, flights),
        SelectionSamples(seen, quality, flights),
        ImputationSamples(before, found, displaced, boxes, truths, flights),
    )


@pytest.fixture(scope='module')
def figures() -> dict[str, dict[str, float]]:
    known = samples()
    return judge_rivals(
        train_rivals(known, LEVELS, FEW).plugins, known, samples(300, seed=1, first=10)
    )


def test_a_gate_learns_when_resting_is_no_loss(figures: dict[str, dict[str, float]]) -> None:
    gate = figures['modality_gating']
    assert gate['auc'] > 0.9
    assert gate['accuracy'] > gate['accuracy_constant'] + 0.2
    assert gate['cross_entropy'] < 0.7 * gate['cross_entropy_constant']
    assert 0.3 < gate['rests'] < 0.7
    assert gate['rests_worse'] < 0.2
    assert gate['quality_lost'] < 0.4 * gate['quality_lost_resting_always']


def test_a_selector_learns_which_level_is_enough(figures: dict[str, dict[str, float]]) -> None:
    selector = figures['model_selection']
    assert selector['accuracy'] > selector['accuracy_constant'] + 0.1
    assert selector['r2_against_constant'] > 0.6
    assert selector['quality'] > selector['quality_small'] + 0.01
    assert selector['quality'] > selector['quality_best'] - 0.05
    shares = [selector[f'chosen_{level}'] for level in LEVELS.levels]
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] > 0.3


def test_an_imputer_learns_how_people_move(figures: dict[str, dict[str, float]]) -> None:
    imputer = figures['imputation']
    assert imputer['iou_going_on'] == pytest.approx(1.0)
    assert imputer['iou'] > imputer['iou_staying'] + 0.15
    assert imputer['auc'] > 0.95
    assert imputer['accuracy'] > imputer['accuracy_constant'] + 0.1


def test_the_same_samples_and_seed_give_the_same_rivals() -> None:
    def weights(seed: int) -> np.ndarray:
        little = FitSettings(epochs=2, hidden=4, seed=seed)
        settings = RivalSettings(little, little)
        gate = train_rivals(samples(200), LEVELS, settings).plugins.modality_gating
        return gate.network.weights1  # type: ignore[union-attr]

    assert np.array_equal(weights(0), weights(0))
    assert not np.array_equal(weights(0), weights(1))


def test_too_little_to_learn_from_is_said() -> None:
    few = samples(60)
    with pytest.raises(TrainingError, match='too few'):
        train_rivals(samples(30), LEVELS, FEW)
    alike = few._replace(gating=few.gating._replace(no_loss=np.ones(60, bool)))
    with pytest.raises(TrainingError, match='never made a difference'):
        train_rivals(alike, LEVELS, FEW)
    nobody = few._replace(imputation=few.imputation._replace(found=np.zeros(60, bool)))
    with pytest.raises(TrainingError, match='nobody is seen'):
        train_rivals(nobody, LEVELS, FEW)


@pytest.mark.parametrize('kind', ['yes_or_no', 'squared', 'found_and_moved'])
def test_gradients_are_those_of_the_loss(kind: str) -> None:
    random = np.random.default_rng(0)
    labels, rows = random.random(8) > 0.5, np.array([1, 3, 4, 6])
    width = {'yes_or_no': 1, 'squared': 2, 'found_and_moved': 3}[kind]
    targets = 2.0 * random.normal(size=(8, 2))
    loss = {
        'yes_or_no': yes_or_no(labels),
        'squared': squared(targets),
        'found_and_moved': found_and_moved(labels, targets),
    }[kind]
    outputs = random.normal(size=(4, width))
    gradient = loss(outputs, rows)[1]
    for place in np.ndindex(outputs.shape):
        step = np.zeros_like(outputs)
        step[place] = 1e-6
        slope = (loss(outputs + step, rows)[0] - loss(outputs - step, rows)[0]) / 2e-6
        assert gradient[place] == pytest.approx(slope, abs=1e-6)


def test_flights_are_held_out_as_a_whole() -> None:
    # Each flight has an answer of its own: what is learnt of some is wrong of the others.
    flights = np.repeat(np.arange(8), 40)
    inputs = np.eye(8)[flights]
    targets = np.random.default_rng(1).normal(size=8)[flights][:, None]
    fit = fit_network(
        inputs,
        flights,
        squared(targets),
        lambda rows: targets[rows].mean(0),
        FitSettings(epochs=20),
    )
    assert fit.held_out_loss > 0.5 * fit.constant_loss
    assert fit.epochs < 20


def test_the_area_under_the_curve_is_that_of_ranks() -> None:
    labels = np.array([False, False, True, True])
    assert area_under_curve(np.array([0.1, 0.2, 0.3, 0.4]), labels) == 1.0
    assert area_under_curve(np.array([0.1, 0.3, 0.2, 0.4]), labels) == 0.75
    assert area_under_curve(np.zeros(4), labels) == 0.5
    assert area_under_curve(np.zeros(2), np.ones(2, bool)) == 0.5


def decision(*boxes: Box) -> Decision:
    tracks = tuple(track(number, box) for number, box in enumerate(boxes))
    return Decision(at(500), at(500), 'odom', tracks, {})


def test_the_quality_of_a_window_counts_overlaps_people_and_wrong_boxes() -> None:
    truth = film(lambda _: [somebody(1), somebody(2, moved(BOX, 200.0))])
    both = (BOX, moved(BOX, 200.0))
    assert window_quality(decision(*both), truth) == pytest.approx(1.0)
    assert window_quality(decision(BOX), truth) == pytest.approx(0.5)
    assert window_quality(decision(*both, moved(BOX, -150.0)), truth) == pytest.approx(2.0 / 3.0)
    # Half of the box's width away: a third of both is shared, and that is not enough to be right.
    assert window_quality(decision(moved(BOX, 20.0)), truth) == pytest.approx(1.0 / 9.0)
    empty = film(lambda _: [])
    assert window_quality(decision(), empty) == 1.0
    assert window_quality(decision(BOX), empty) == 0.0
    late = replace(decision(BOX), window_end_ns=at(90_000))
    assert np.isnan(window_quality(late, truth))


def test_a_decision_is_judged_at_the_end_of_its_window() -> None:
    truth = film(lambda ms: [somebody(1, moved(BOX, 0.1 * ms))])
    moving = replace(track(1, moved(BOX, 40.0)), box_velocity=(100.0, 0.0))
    early = replace(decision(), state_ns=at(400), tracks=(moving,))
    assert window_quality(early, truth) == pytest.approx(1.0)


def test_means_over_neighbours_leave_out_what_is_unknown() -> None:
    values = np.array([[0.0, 1.0], [np.nan, 1.0], [1.0, 4.0]])
    assert smoothed(values, 1).tolist() == [[0.0, 1.0], [0.5, 2.0], [1.0, 2.5]]


def test_samples_are_kept_and_put_together(tmp_path: Path) -> None:
    one = samples(60)
    keep_samples(tmp_path / 'flight.npz', one)
    again = kept_samples(tmp_path / 'flight.npz')
    assert again is not None
    for part, other in zip(one, again, strict=True):
        for column, same in zip(part, other, strict=True):
            assert np.array_equal(column, same)
    assert kept_samples(tmp_path / 'nothing.npz') is None
    (tmp_path / 'broken.npz').write_bytes(b'half')
    with pytest.raises(TrainingError, match='cannot be read'):
        kept_samples(tmp_path / 'broken.npz')
    both = joined([one, samples(40, first=20)])
    assert len(both.gating.seen) == len(both.imputation.found) == 100
    assert set(both.selection.flights[-40:]) <= set(range(20, 26))


def test_pictures_taken_away_are_samples_of_imputation() -> None:
    flight = encoded_flight(lambda when: 1 + (when < 1200.0), 2.0)
    found = picture_samples(flight, 7, '', 500 * MS, 0)
    assert found.before.shape == (len(found.found), len(BEFORE_FIELDS))
    assert set(found.flights) == {7}
    # Everybody stands still; one is gone from some picture on.
    assert np.allclose(found.moved[found.found], 0.0)
    assert 0.0 < (~found.found).mean() < 0.1
    same = picture_samples(flight, 7, '', 500 * MS, 0)
    assert np.array_equal(found.before, same.before)


def test_runs_at_random_are_samples_of_gating_and_selection(tmp_path: Path) -> None:
    bundle = BundleUnderTest(write_tiny_bundle(tmp_path / 'tiny'), STATED, 'runs at random')
    people = [Box(100.0 + 120 * n, 165.0, 150.0 + 120 * n, 315.0) for n in range(2)]
    truth = film(
        lambda ms: [somebody(n, box) for n, box in enumerate(people[: 1 + (ms > 1000.0)])],
        end=2000,
    )
    flight = encoded_flight(lambda when: 1 + (when > 1000.0), 2.0)
    # The tiny bundle has two levels; what small ones see is worse.
    for place, made in list(flight.features.items()):
        if place[0] == CAMERA and isinstance(made, UnitFeatures):
            worse = tuple(replace(d, box=Box(*(v + 20.0 for v in d.box))) for d in made.detections)
            flight.keep(CAMERA, 'large', place[2], replace(made, level='large'))
            small = replace(made, level='small', detections=worse)
            flight.keep(CAMERA, 'small', place[2], small)
    flight.levels[CAMERA] = ('small', 'large')
    runs = WindowRuns(flight, truth, bundle, None, choices_of(bundle.folder), 3)
    gating, selection = runs.gating(), runs.selection()
    assert gating.seen.shape == (len(gating.no_loss), len(SEEN_FIELDS))
    assert len(gating.seen) > 10
    # The one who appears is missed where the camera rests.
    assert gating.no_loss.any()
    assert not gating.no_loss.all()
    assert gating.worse[~gating.no_loss].min() > 0.02
    assert selection.quality.shape[1] == 2
    assert (selection.quality[:, 1] > selection.quality[:, 0] + 0.2).mean() > 0.8
    levels = selection.seen[:, SEEN_FIELDS.index('level')]
    assert set(levels.tolist()) == {0.0, 1.0}
    assert set(gating.flights) == set(selection.flights) == {3}
