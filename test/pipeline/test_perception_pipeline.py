"""From encoded units to decisions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hand_made_pictures import USUAL, usual_pictures
from hand_made_units import LENS, MOUNTS, MS, ManualClock, at, features, receipt, unit

from mmedge_ros.core.data_types import (
    CAMERA,
    RADAR,
    Box,
    Decision,
    Detection,
    UnitFeatures,
)
from mmedge_ros.encoding.picture_drift import PictureDrift
from mmedge_ros.geometry.transforms import StampedTransform
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters


def picture(available: float, sequence: int = 0, people: int = 1, delay: float = 5.0):
    """An encoded picture of people who stand five metres away."""
    boxes = [Box(100.0 + 120 * n, 165.0, 150.0 + 120 * n, 315.0) for n in range(people)]
    return features(
        unit(available, CAMERA, sequence, delay),
        detections=tuple(Detection(box, 0.9, 'person') for box in boxes),
        image_size=(640, 480),
    )


def scan(available: float, sequence: int = 0) -> UnitFeatures:
    return features(unit(available, RADAR, sequence, delay=2.0))


def pipeline(noise_scale: float = 1.0) -> PerceptionPipeline:
    subject = PerceptionPipeline(noise_scale=noise_scale)
    subject.rig.set_camera(LENS)
    subject.rig.add_transforms(MOUNTS)
    return subject


def fed(to: PerceptionPipeline, units: Iterable[UnitFeatures], took: float = 3.0):
    """Hand over units ``took`` ms after they were received, polling after each."""
    decisions: list[Decision] = []
    for each in units:
        now_ns = each.available_ns + round(took * MS)
        to.add_features(each, now_ns)
        decisions += to.poll(now_ns)
    return decisions


def pictures(first: float, count: int, people: int = 1) -> list[UnitFeatures]:
    return [picture(first + 50 * n, round(first) + n, people) for n in range(count)]


def ids(decision: Decision) -> list[int]:
    return [track.id for track in decision.tracks]


def test_a_decision_says_what_it_knows_and_when_it_was_true() -> None:
    subject = pipeline()
    decisions = fed(subject, [picture(60, 0, delay=20), scan(80), picture(140, 1, delay=20)])
    (decision,) = decisions
    assert decision.newest_ns == {CAMERA: at(40), RADAR: at(78)}
    assert decision.state_ns == at(78)
    assert decision.configuration_ids == (0,)
    assert decision.lost == decision.late == decision.skipped == ()
    (later,) = subject.poll(at(202))
    assert later.newest_ns == {CAMERA: at(120), RADAR: at(78)}
    assert later.state_ns == at(120)


def test_the_state_is_never_later_than_its_window_and_never_goes_back() -> None:
    subject = pipeline()
    units = [picture(10 + 37 * n, n, delay=5.0 + 30 * (n % 4)) for n in range(60)]
    states = [(d.state_ns, d.window_end_ns) for d in fed(subject, units)]
    assert all(state <= end for state, end in states)
    assert [s for s, _ in states] == sorted(s for s, _ in states)


def test_a_stamp_slightly_in_the_future_does_not_carry_the_state_there() -> None:
    subject = pipeline()
    subject.add_features(picture(99, delay=-9), at(100))
    (decision,) = subject.poll(at(102))
    assert decision.newest_ns == {CAMERA: at(108)}
    assert decision.state_ns == at(100)


def test_a_late_unit_does_not_turn_the_state_back() -> None:
    subject = pipeline()
    subject.add_features(picture(60), at(65))
    assert [d.state_ns for d in subject.poll(at(202))] == [at(55), at(200)]
    subject.add_features(picture(250, 1, delay=80), at(255))
    assert [d.state_ns for d in subject.poll(at(302))] == [at(200)]


def test_units_are_worked_on_while_their_window_is_still_filling() -> None:
    subject = pipeline()
    subject.add_features(picture(60), at(65))
    assert subject.work_ahead(at(65))
    assert subject.tracker.newest_ns == at(55)
    assert not subject.work_ahead(at(65))


def short_of_time(step: float) -> tuple[PerceptionPipeline, ManualClock]:
    """A pipeline that has learned that a unit takes it 20 ms, with five pictures for 100 ms.

    :param step: ms between its reading of the clock before and after work
    """
    subject, clock = pipeline(), ManualClock(at(0))
    budget = subject.limit_time(clock.now_ns)
    begun_ns = budget.started()
    clock.ns += 20 * MS
    budget.ended('unit', begun_ns)
    for number in range(5):
        each = picture(40 + 10 * number, number)
        subject.add_features(each, each.available_ns + 3 * MS)
    clock.ns = at(step)
    return subject, clock


def test_of_units_that_there_is_no_time_for_the_newest_are_used_and_the_others_counted() -> None:
    subject, _ = short_of_time(102)
    (decision,) = subject.poll(at(102))
    assert subject.budget.shed['units'] == 3
    assert decision.newest_ns == {CAMERA: at(75)}
    assert subject.tracker.newest_ns == at(75)
    assert not subject.has_work_ahead


def test_units_wait_for_the_next_decision_where_there_is_time_for_none() -> None:
    subject, clock = short_of_time(149)
    (decision,) = subject.poll(at(149))
    assert (decision.newest_ns, subject.budget.shed['units']) == ({}, 0)
    clock.ns = at(10)
    (decision,) = subject.poll(at(202))
    assert decision.newest_ns == {CAMERA: at(75)}


def test_windows_close_earlier_for_a_while_after_time_was_too_short() -> None:
    subject, clock = short_of_time(149)
    subject.poll(at(149))
    reserved = [subject.assembler.reserve_ns]
    for number in range(2, 40):
        clock.ns = at(10)
        subject.poll(at(100 * number + 2))
        reserved.append(subject.assembler.reserve_ns)
    assert reserved[0] > reserved[5] > reserved[-1]
    assert reserved[-1] <= 45 * MS


def test_without_anything_new_the_state_is_predicted_to_the_window_end() -> None:
    subject = pipeline()
    fed(subject, pictures(20, 6))
    decisions = [d for ms in range(330, 1000, 10) for d in subject.poll(at(ms))]
    silent = [d for d in decisions if not d.trail]
    assert len(silent) >= 5
    assert all(d.state_ns == d.window_end_ns for d in silent)
    assert [d.lost for d in decisions][-1] == (CAMERA, RADAR)


def test_what_arrives_after_the_end_of_a_window_does_not_show_in_it() -> None:
    subject = pipeline()
    subject.add_features(picture(60, 0), at(65))
    subject.add_features(picture(100.5, 1, delay=50.0), at(101))
    (decision,) = subject.poll(at(102))
    assert decision.newest_ns == {CAMERA: at(55)}
    assert decision.state_ns == at(55)
    (later,) = subject.poll(at(202))
    assert later.newest_ns == {CAMERA: at(55)}, 'stamped earlier, and no newer for it'
    assert later.configuration_ids == (0,)


def test_work_done_while_the_window_fills_changes_nothing_in_the_result() -> None:
    units = [*pictures(20, 12, people=2), *(scan(15 + 40 * n, n) for n in range(15))]
    units.sort(key=lambda u: u.available_ns)
    steady, at_the_end = pipeline(), pipeline()
    early = fed(steady, units) + steady.poll(at(702))
    late = []
    for end in range(100, 701, 100):
        for each in units:
            if at(end - 100) < each.available_ns <= at(end):
                at_the_end.add_features(each, at(end + 1))
        late += at_the_end.poll(at(end + 2))
    assert [d.window_end_ns for d in early] == [d.window_end_ns for d in late]
    for one, other in zip(early, late, strict=True):
        assert ids(one) == ids(other)
        for a, b in zip(one.tracks, other.tracks, strict=True):
            np.testing.assert_array_equal(a.position, b.position)


def test_all_configurations_of_the_window_are_listed() -> None:
    subject = pipeline()
    units = [replace(u, configuration_id=n // 3) for n, u in enumerate(pictures(20, 20))]
    decisions = fed(subject, units)
    assert decisions[1].configuration_ids == (0, 1)
    assert decisions[-1].configuration_ids == tuple(range(2, 6))


def test_a_trail_says_when_the_features_arrived_and_then_how_long_the_window_waited() -> None:
    subject = pipeline()
    subject.add_features(picture(60), at(65))
    (decision,) = subject.poll(at(102))
    assert decision.trail[-2:] == (
        ('transport_features', at(60), at(65)),
        ('window', at(65), at(102)),
    )


# ------------------------------------------------------------------------------ geometry


def test_without_calibration_a_lens_is_assumed_and_every_decision_says_so() -> None:
    subject = PerceptionPipeline()
    assert not subject.rig.has_camera
    decisions = fed(subject, pictures(20, 10))
    assert [track.label for track in decisions[-1].tracks] == ['person']
    assert any('no camera calibration: a lens of 53' in t for t in decisions[-1].degraded)
    assumed = decisions[-1].tracks[0].id
    subject.rig.set_camera(LENS)
    assert subject.rig.has_camera
    # Its place was a guess, and is begun anew.
    (track,) = fed(subject, pictures(520, 10))[-1].tracks
    assert track.id != assumed
    assert not any('calibration' in text for text in subject.degraded)


def test_when_the_tracking_frame_moves_tracks_begin_anew() -> None:
    subject = PerceptionPipeline()
    subject.rig.set_camera(LENS)
    subject.rig.add_transforms([MOUNTS[0]._replace(parent='mast')])
    before = fed(subject, pictures(20, 10))[-1]
    subject.rig.add_transforms([StampedTransform('base_link', 'mast', np.ones(3), np.eye(3))])
    after = fed(subject, pictures(520, 10))[-1]
    assert (before.frame_id, after.frame_id) == ('mast', 'base_link')
    assert min(ids(after)) > max(ids(before))
    np.testing.assert_allclose(
        after.tracks[0].position, before.tracks[0].position + 1.0, atol=0.05
    )


# ------------------------------------------------------------------------------ starting over


def test_when_the_clock_is_set_back_tracks_begin_anew_under_new_ids() -> None:
    subject = pipeline()
    before = fed(subject, pictures(60_020, 10))[-1]
    decisions = fed(subject, pictures(20, 10))
    assert [d.window_end_ns for d in decisions] == [at(100.0 * n) for n in range(1, 5)]
    assert min(ids(decisions[-1])) > max(ids(before))
    assert all(d.state_ns <= d.window_end_ns for d in decisions)


def test_a_clock_that_stands_still_does_not_fill_the_memory() -> None:
    subject = pipeline()
    subject.add_features(picture(40), at(50))
    for n in range(1500):
        subject.add_features(picture(150, n, people=0), at(50))
        assert subject.poll(at(50)) == []
    assert len(subject._waiting) <= 1000


@pytest.mark.parametrize(('offset', 'late'), [(0.04, RADAR), (-0.04, CAMERA)])
def test_stamps_of_the_later_sensor_are_taken_back_by_the_time_offset(
    offset: float, late: str
) -> None:
    subject = PerceptionPipeline(PipelineParameters(time_offset=offset))
    subject.rig.set_camera(LENS)
    subject.rig.add_transforms(MOUNTS)
    units = sorted(
        [*pictures(10, 20), *(scan(15 + 50 * n, n) for n in range(20))],
        key=lambda unit: unit.available_ns,
    )
    decisions: list[Decision] = []
    for each in units:
        subject.add_receipt(receipt(each), each.available_ns)
        decisions += fed(subject, [each])
    assert decisions
    for decision in decisions:
        before_ns = {
            modality: max(
                unit.stamp_ns
                for unit in units
                if unit.modality == modality and unit.available_ns <= decision.window_end_ns
            )
            for modality in (CAMERA, RADAR)
        }
        before_ns[late] -= 40 * MS
        assert decision.newest_ns == before_ns
        assert not decision.late
        assert decision.trail[0].begin_ns <= decision.trail[0].end_ns


def test_pictures_unlike_the_calibration_flights_degrade_decisions_and_change_no_track() -> None:
    def flown(contrast: float, drift: PictureDrift | None) -> list[Decision]:
        subject = PerceptionPipeline(drift=drift)
        subject.rig.set_camera(LENS)
        subject.rig.add_transforms(MOUNTS)
        look = USUAL._replace(contrast=contrast * USUAL.contrast)
        units = [replace(picture(100.0 * n + 20.0, n), appearance=look) for n in range(80)]
        return fed(subject, units)

    plain, usual, foggy = (
        flown(1.0, None),
        flown(1.0, PictureDrift(usual_pictures())),
        flown(0.3, PictureDrift(usual_pictures())),
    )
    assert [d.degraded for d in usual] == [d.degraded for d in plain]
    assert not any('unlike' in text for text in foggy[0].degraded)
    assert any(text.startswith('pictures are unlike') for text in foggy[-1].degraded)
    assert [repr(d.tracks) for d in foggy] == [repr(d.tracks) for d in plain]
