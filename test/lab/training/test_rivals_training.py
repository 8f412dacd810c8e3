"""What rivals learn from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hand_made_encoded_flight import encoded_flight
from hand_made_rivals import rival_samples
from hand_made_truth import BOX, at, film, moved, track, true_person
from hand_made_units import MS
from tiny_bundle import write_tiny_bundle

from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.policies.imputation import PERSON_FIELDS
from mmedge_lab.policies.policy_features import POLICY_FIELDS
from mmedge_lab.policies.settings import STATED
from mmedge_lab.policies.trained_rivals import choices_of
from mmedge_lab.training import TrainingError
from mmedge_lab.training.rivals.rival_training import area_under_curve
from mmedge_lab.training.rivals.sample_runs import (
    WindowRuns,
    picture_samples,
    smoothed,
    window_quality,
)
from mmedge_lab.training.rivals.samples import (
    joined,
    keep_samples,
    kept_samples,
)
from mmedge_ros.data_types import CAMERA, Box, Decision, UnitFeatures


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
    truth = film(lambda _: [true_person(1), true_person(2, moved(BOX, 200.0))])
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
    truth = film(lambda ms: [true_person(1, moved(BOX, 0.1 * ms))])
    moving = replace(track(1, moved(BOX, 40.0)), box_velocity=(100.0, 0.0))
    early = replace(decision(), state_ns=at(400), tracks=(moving,))
    assert window_quality(early, truth) == pytest.approx(1.0)


def test_means_over_neighbours_leave_out_what_is_unknown() -> None:
    values = np.array([[0.0, 1.0], [np.nan, 1.0], [1.0, 4.0]])
    assert smoothed(values, 1).tolist() == [[0.0, 1.0], [0.5, 2.0], [1.0, 2.5]]


def test_samples_are_kept_and_put_together(tmp_path: Path) -> None:
    one = rival_samples(60)
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
    both = joined([one, rival_samples(40, first=20)])
    assert len(both.gating.seen) == len(both.imputation.found) == 100
    assert set(both.selection.flights[-40:]) <= set(range(20, 26))


def test_pictures_taken_away_are_samples_of_imputation() -> None:
    flight = encoded_flight(lambda when: 1 + (when < 1200.0), 2.0)
    result = picture_samples(flight, 7, '', 500 * MS, 0)
    assert result.before.shape == (len(result.found), len(PERSON_FIELDS))
    assert set(result.flights) == {7}
    # Everybody stands still; one is gone from some picture on.
    assert np.allclose(result.moved[result.found], 0.0)
    assert 0.0 < (~result.found).mean() < 0.1
    same = picture_samples(flight, 7, '', 500 * MS, 0)
    assert np.array_equal(result.before, same.before)


def test_runs_at_random_are_samples_of_gating_and_selection(tmp_path: Path) -> None:
    bundle = BundleUnderTest(write_tiny_bundle(tmp_path / 'tiny'), STATED, 'runs at random')
    people = [Box(100.0 + 120 * n, 165.0, 150.0 + 120 * n, 315.0) for n in range(2)]
    truth = film(
        lambda ms: [true_person(n, box) for n, box in enumerate(people[: 1 + (ms > 1000.0)])],
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
    assert gating.seen.shape == (len(gating.no_loss), len(POLICY_FIELDS))
    assert len(gating.seen) > 10
    # The one who appears is missed where the camera rests.
    assert gating.no_loss.any()
    assert not gating.no_loss.all()
    assert gating.worse[~gating.no_loss].min() > 0.02
    assert selection.quality.shape[1] == 2
    assert (selection.quality[:, 1] > selection.quality[:, 0] + 0.2).mean() > 0.8
    levels = selection.seen[:, POLICY_FIELDS.index('level')]
    assert set(levels.tolist()) == {0.0, 1.0}
    assert set(gating.flights) == set(selection.flights) == {3}
