"""Trained choosers: the camera only where a gate wants it, and the cheapest level that will do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hand_made_rivals import choices, constant_network, linear_network
from hand_made_schedules import (
    PERIODS,
    FakeChooser,
    arrivals,
    constant_profile,
    end_of,
    settings,
)
from hand_made_units import MS, features, person, unit

from mmedge_lab.policies.causality import check
from mmedge_lab.policies.policy_features import POLICY_FIELDS
from mmedge_lab.policies.schedule import PlannedDecision, Schedule
from mmedge_lab.policies.steering import Chooser, ChooserSteering, Facts
from mmedge_lab.policies.trained_choosers import TrainedSelector
from mmedge_lab.policies.trained_rivals import trained_gate
from mmedge_lab.policies.window_policies import Blocking
from mmedge_ros.core.data_types import CAMERA, RADAR

GATED = Blocking('modality_gating', cached=True, first=RADAR)
TAKE, REST = (30.0, 'large'), (2.0, 'large')


def scheduled(gate: Chooser, alone: bool = False, seconds: float = 3.0) -> Schedule:
    steered = settings(constant_profile(), make_steering=lambda: ChooserSteering(gate, 500 * MS))
    return GATED.schedule(arrivals(seconds), PERIODS, steered, alone=alone)


def broken(schedule: Schedule, seconds: float = 3.0) -> list[str]:
    return check(schedule, arrivals(seconds), GATED.promises, 500 * MS)


def of_window(schedule: Schedule, number: int) -> PlannedDecision:
    return next(d for d in schedule.decisions if d.window_end_ns == end_of(number))


@pytest.mark.parametrize('alone', [True, False])
def test_the_gate_knows_the_new_scans_and_none_of_the_new_pictures(alone: bool) -> None:
    gate = FakeChooser(lambda _: TAKE)
    schedule = scheduled(gate, alone)
    assert broken(schedule) == []
    # The first question comes before the flight, then there is one for each window.
    for facts, decision in zip(gate.asked[1:], schedule.decisions, strict=True):
        end_ns = decision.window_end_ns
        for known in facts.features.values():
            assert all(u.trail[-1].end_ns + MS <= facts.now_ns for u in known)
        newest = {m: max(u.available_ns for u in known) for m, known in facts.features.items()}
        assert newest.get(CAMERA, 0) <= end_ns - 100 * MS
        assert newest[RADAR] > end_ns - 50 * MS
        # Two scans of 1 ms, and their transport.
        assert facts.now_ns == end_ns + 3 * MS
        pictures = [u for u in decision.uses if u.modality == CAMERA]
        begun = {e.sequence: e.begin_ns for e in schedule.encodings if e.modality == CAMERA}
        assert begun[pictures[-1].sequence] >= facts.now_ns


def test_a_camera_that_rests_leaves_a_trickle_and_no_later_window_makes_up_for_it() -> None:
    gate = FakeChooser(lambda facts: REST if facts.now_ns > end_of(10) else TAKE)
    schedule = scheduled(gate)
    assert broken(schedule) == []
    calls = Counter(e.sequence for e in schedule.encodings if e.modality == CAMERA)
    assert set(calls.values()) == {1}
    before, after = ([s for s in calls if (s < 27) is early] for early in (True, False))
    assert len(before) == 27
    # The last 2.1 of 3 s.
    assert len(after) in (4, 5)
    resting = [d for d in schedule.decisions if d.skipped]
    assert {d.skipped for d in resting} == {(CAMERA,)}
    assert len(resting) + len(after) == 21
    # Its own work is all that such a window takes beyond the two scans.
    assert {round(1e3 * d.latency, 3) for d in resting} == {6.0}
    back = FakeChooser(lambda facts: REST if end_of(10) < facts.now_ns < end_of(12) else TAKE)
    again = scheduled(back)
    taken = {e.sequence for e in again.encodings if e.modality == CAMERA}
    # Three pictures are new in window 12; those of windows 10 and 11 stay untaken.
    assert len([u for u in of_window(again, 12).uses if u.modality == CAMERA]) < 15 - 4
    assert len(set(range(27, 36)) - taken) >= 5
    assert of_window(again, 12).latency == pytest.approx(0.003 + 3 * 0.010 + 0.001 + 0.003)


def facts(*pictures: float, people: int = 1) -> Facts:
    """Pictures that many ms after the beginning, asked about at 500 ms."""
    result = [
        features(
            unit(ms, CAMERA, number),
            detections=tuple(person(100.0 + 120.0 * n, 240.0) for n in range(people)),
            image_size=(640, 480),
            level='large',
        )
        for number, ms in enumerate(pictures)
    ]
    return Facts(end_of(5), {CAMERA: result} if result else {})


def test_a_trained_gate_rests_from_its_threshold_on_and_never_before_it_saw_anything() -> None:
    of = choices('small', 'large')
    sure = trained_gate(constant_network(len(POLICY_FIELDS), 2.0), 0.5, of)
    assert sure.configuration(facts(400.0)) == of.resting
    assert sure.configuration(facts()) == of.by_level[-1]
    assert sure.probability(facts(400.0)) == pytest.approx(0.881, abs=1e-3)
    careful = trained_gate(constant_network(len(POLICY_FIELDS), 2.0), 0.9, of)
    assert careful.configuration(facts(400.0)) == of.by_level[-1]


LEVELS = ('small', 'medium', 'large')


def selector(margin: float) -> TrainedSelector:
    """Each person costs the small level 0.1 of quality, and the medium one 0.02."""
    weights = np.zeros((len(POLICY_FIELDS), 3))
    weights[POLICY_FIELDS.index('strong')] = (0.1, 0.02, 0.0)
    network = linear_network(len(POLICY_FIELDS), weights, np.zeros(3))
    of = choices(*LEVELS)
    return TrainedSelector(network, margin, of.levels, of.by_level)


def chosen(people: int, margin: float = 0.05) -> str:
    picture = features(
        unit(400.0),
        detections=tuple(person(100.0 + 120.0 * n, 240.0) for n in range(people)),
        image_size=(640, 480),
    )
    facts = Facts(end_of(5), {CAMERA: [picture]})
    return selector(margin).configuration(facts).of(CAMERA).level


def test_the_level_is_the_cheapest_that_falls_short_by_little() -> None:
    assert [chosen(people) for people in (0, 1, 2, 3)] == ['small', 'medium', 'medium', 'large']
    assert chosen(3, margin=0.5) == 'small'
    assert chosen(1, margin=0.0) == 'large'
