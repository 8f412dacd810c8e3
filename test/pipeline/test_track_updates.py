"""What is published between decisions: tracks at the pace of the camera."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from fake_fusion_networks import FakeFusionNetworks
from hand_made_maps import Cell, camera_grid_with
from hand_made_units import LENS, MOUNTS, MS, ManualClock, at, features, receipt, returns, unit

from mmedge_ros.core.data_types import (
    CAMERA,
    RADAR,
    Box,
    Decision,
    Detection,
    ResultKind,
    UnitFeatures,
)
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.report.report import decision_lines
from mmedge_ros.tracking.map_decoding import DecodingParameters
from mmedge_ros.windows.feature_fusion import FeatureFusion

_PERIOD = 33.0


def picture(available: float, sequence: int = 0, shift: float = 0.0, people: int = 1):
    """An encoded picture of people who walk across it; its grid shows them, too."""
    left = 100.0 + 60.0 * sequence * _PERIOD / 1e3 + shift
    boxes = [Box(left + 150 * n, 165.0, left + 50 + 150 * n, 315.0) for n in range(people)]
    return features(
        unit(available, CAMERA, sequence),
        detections=tuple(Detection(box, 0.9, 'person') for box in boxes),
        grid=camera_grid_with([Cell(box) for box in boxes]),
        image_size=(640, 480),
    )


def scan(available: float, sequence: int = 0) -> UnitFeatures:
    rows = [(5.0, 2.0, z, 0.4) for z in (-0.4, 0.0, 0.4)]
    return features(unit(available, RADAR, sequence, delay=2.0), returns=returns(*rows))


def pipeline(*, fused: bool = False, updates: bool = True) -> PerceptionPipeline:
    networks = FeatureFusion(FakeFusionNetworks(), DecodingParameters(0.1)) if fused else None
    subject = PerceptionPipeline(PipelineParameters(updates=updates), networks)
    subject.rig.set_camera(LENS)
    subject.rig.add_transforms(MOUNTS)
    return subject


def flight(count: int = 20, first: float = 20.0, **content: int) -> list[UnitFeatures]:
    units = [picture(first + _PERIOD * n, n, **content) for n in range(count)]
    units += [scan(15.0 + 50.0 * n, n) for n in range(round(_PERIOD * count / 50))]
    return sorted(units, key=lambda u: u.available_ns)


def flown(
    subject: PerceptionPipeline, units: Iterable[UnitFeatures], took: float = 3.0
) -> tuple[list[Decision], list[Decision]]:
    """Return decisions and updates of a pipeline that is asked for both after each unit."""
    decisions: list[Decision] = []
    updates: list[Decision] = []
    for each in units:
        now_ns = each.available_ns + round(took * MS)
        subject.add_features(each, now_ns)
        decisions += subject.poll(now_ns)
        while subject.work_ahead(now_ns):
            pass
        update = subject.update(now_ns)
        if update is not None:
            updates.append(update.published(now_ns))
    return decisions, updates


@pytest.mark.parametrize('fused', [False, True])
def test_an_update_tells_of_each_picture_as_it_completes(fused: bool) -> None:
    units = flight()
    decisions, updates = flown(pipeline(fused=fused), units)
    told = [update.newest_ns[CAMERA] for update in updates]
    assert told == [u.stamp_ns for u in units if u.modality == CAMERA]
    assert {update.kind for update in updates} == {ResultKind.UPDATE}
    for update in updates[6:]:
        (person,) = update.tracks
        assert person.box is not None
        (seen,) = (
            u for u in units if u.modality == CAMERA and u.stamp_ns == update.newest_ns[CAMERA]
        )
        assert person.box.x0 == pytest.approx(seen.detections[0].box.x0, abs=4.0)
        assert update.state_ns == max(update.newest_ns.values())
        assert 0 <= update.window_end_ns - update.published_ns <= 100 * MS
    ids = {track.id for result in (*decisions, *updates) for track in result.tracks}
    assert len(ids) == 1


@pytest.mark.parametrize('fused', [False, True])
def test_updates_change_no_decision(fused: bool) -> None:
    late = flight(30, people=3)
    # Some come out of order, as where encoders differ in pace.
    late[10], late[12], late[20], late[21] = late[12], late[10], late[21], late[20]
    with_updates, updates = flown(pipeline(fused=fused), late)
    without, none = flown(pipeline(fused=fused, updates=False), late)
    assert len(updates) > 20
    assert not none
    assert decision_lines(with_updates) == decision_lines(without)


def test_what_the_fork_of_feature_fusion_begins_is_left_out() -> None:
    # Two pictures confirm a person, but the first decision may give that id to another one.
    # That tells of the fourth picture.
    units = [picture(10.0 + 30.0 * n, n) for n in range(5)]
    _, fused = flown(pipeline(fused=True), units)
    assert [len(update.tracks) for update in fused] == [0, 0, 0, 1]
    _, at_once = flown(pipeline(), units)
    assert [len(update.tracks) for update in at_once] == [0, 1, 1, 1]


def test_nothing_new_makes_no_update() -> None:
    subject = pipeline()
    flown(subject, [picture(20)])
    assert subject.update(at(30)) is None
    subject.add_features(scan(31), at(32))
    subject.work_ahead(at(32))
    assert subject.update(at(32)) is None, 'a scan alone'


def waiting(took: float) -> PerceptionPipeline:
    """A pipeline whose window had to wait at its end; its pictures took so long to encode."""
    subject = pipeline()
    for n, available in enumerate((20.0, 53.0)):
        subject.add_features(picture(available, n), at(available + took))
        while subject.work_ahead(at(available + took)):
            pass
        subject.update(at(available + took))
    subject.add_features(scan(80), at(81))
    subject.work_ahead(at(81))
    subject.add_receipt(receipt(picture(95, 2)), at(96))
    assert subject.poll(at(102)) == []
    return subject


def test_what_is_ready_at_the_end_of_a_window_that_waits_goes_out_at_once() -> None:
    subject = waiting(took=20)
    update = subject.update(at(102), takes_ns=3 * MS)
    assert update is not None
    assert update.newest_ns == {CAMERA: at(48), RADAR: at(78)}
    assert update.window_end_ns == at(100)
    assert subject.update(at(103)) is None
    subject.add_features(picture(95, 2), at(115))
    assert len(subject.poll(at(115))) == 1


def test_a_window_that_may_close_at_any_moment_gets_no_update() -> None:
    assert waiting(took=9).update(at(102), takes_ns=3 * MS) is None, 'due at 104 ms'


def test_after_time_was_short_there_are_no_updates_for_a_while() -> None:
    clock = ManualClock()
    subject = pipeline()
    budget = subject.limit_time(clock.now_ns)
    told = []
    for n in range(90):
        clock.ns = at(20 + _PERIOD * n)
        budget.shed['pictures'] += n == 10
        subject.add_features(picture(20 + _PERIOD * n, n), clock.ns)
        subject.poll(clock.ns)
        while subject.work_ahead(clock.ns):
            pass
        told += [n] if subject.update(clock.ns) is not None else []
    missing = sorted(set(range(90)) - set(told))
    assert missing[0] == 10
    assert missing[-1] < 10 + 2000 / _PERIOD + 1
    assert len(missing) > 50
    assert budget.shed['updates'] == len(missing)


def test_an_update_that_does_not_fit_is_not_made() -> None:
    clock = ManualClock(at(50))
    subject = pipeline()
    budget = subject.limit_time(clock.now_ns)
    begun = budget.started()
    clock.ns = at(99)
    budget.ended('publishing', begun)
    clock.ns = at(60)
    subject.add_features(picture(58), clock.ns)
    subject.work_ahead(clock.ns)
    assert subject.update(clock.ns) is None, '49 ms do not fit before 102 ms'
