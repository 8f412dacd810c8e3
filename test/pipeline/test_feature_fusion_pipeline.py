"""The perception pipeline where a bundle brings networks that fuse."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from fake_fusion_networks import FakeFusionNetworks
from hand_made_maps import Cell, camera_grid_with
from hand_made_units import LENS, MOUNTS, MS, ManualClock, at, features, returns, unit
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, RADAR, Box, Decision, Detection, UnitFeatures
from mmedge_ros.encoding.feature_grid import RADAR_GRID
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.window_assembler import WindowParameters
from mmedge_ros.tracking import FusionError
from mmedge_ros.tracking.map_decoding import DecodingParameters
from mmedge_ros.windows.feature_fusion import FeatureFusion

SEEN = Box(100.0, 165.0, 150.0, 315.0)
ENCODERS_OWN = Box(400.0, 165.0, 450.0, 315.0)


def picture(available: float, sequence: int = 0, delay: float = 5.0) -> UnitFeatures:
    """The grid shows a person; what the encoder itself detected stands elsewhere."""
    return features(
        unit(available, CAMERA, sequence, delay),
        detections=(Detection(ENCODERS_OWN, 0.9, 'person'),),
        grid=camera_grid_with([Cell(SEEN)]),
        image_size=(640, 480),
    )


def scan(available: float, sequence: int = 0, rows=()) -> UnitFeatures:
    grid = np.zeros(RADAR_GRID, np.float16)
    return features(unit(available, RADAR, sequence, 2.0), grid=grid, returns=returns(*rows))


def pipeline(networks: FakeFusionNetworks, distance_known: bool = True) -> PerceptionPipeline:
    decoding = DecodingParameters(0.1, distance_deviation=0.1 if distance_known else np.nan)
    result = PerceptionPipeline(None, FeatureFusion(networks, decoding))
    result.rig.set_camera(LENS)
    result.rig.add_transforms(MOUNTS)
    return result


def fed(
    to: PerceptionPipeline, units: Iterable[UnitFeatures], took: float = 3.0, ahead: int = 0
) -> list[Decision]:
    """Hand over units ``took`` ms after they were received; do some work ahead after each."""
    decisions: list[Decision] = []
    for each in units:
        now_ns = each.available_ns + round(took * MS)
        to.add_features(each, now_ns)
        decisions += to.poll(now_ns)
        for _ in range(ahead):
            to.work_ahead(now_ns)
    return decisions


def pictures(first: float, count: int) -> list[UnitFeatures]:
    return [picture(first + 33 * n, n) for n in range(count)]


def tracker_units(subject: PerceptionPipeline, modality: str) -> list[UnitFeatures]:
    return [u for u in subject.tracker._pairing._units if u.modality == modality]


def test_the_tracker_takes_each_picture_of_a_window_as_it_was_fused() -> None:
    subject = pipeline(FakeFusionNetworks())
    fed(subject, [*pictures(20, 3), picture(120, 3)])
    taken = tracker_units(subject, CAMERA)
    assert [each.key for each in taken] == [each.key for each in pictures(20, 3)]
    for each in taken:
        assert each.detections[0].box == pytest.approx(SEEN, abs=0.5)
        assert not each.grid.size


@pytest.mark.parametrize(('score', 'people'), [(0.5, 1), (0.2, 0)])
def test_fused_detections_begin_tracks_at_a_score_of_their_own(score: float, people: int) -> None:
    faint = [
        replace(u, grid=camera_grid_with([Cell(SEEN, score=score)])) for u in pictures(20, 30)
    ]
    decisions = fed(pipeline(FakeFusionNetworks()), faint)
    assert {len(d.tracks) for d in decisions[3:]} == {people}


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_the_order_in_which_units_come_before_their_window_closes_changes_no_decision(
    seed: int,
) -> None:
    random = Random(seed)
    units = sorted(
        [*pictures(20, 20), *(scan(15 + 61 * n, n) for n in range(10))],
        key=lambda u: u.available_ns,
    )
    units = random.sample(units, 25)  # some are lost
    shuffled, in_order = pipeline(FakeFusionNetworks()), pipeline(FakeFusionNetworks())
    for end in range(100, 800, 100):
        due = [u for u in units if at(end - 100) < u.available_ns <= at(end)]
        for subject, order in (
            (shuffled, random.sample(due, len(due))),
            (in_order, sorted(due, key=lambda u: u.stamp_ns)),
        ):
            for each in order:
                subject.add_features(each, at(end))
                if subject is shuffled and random.random() < 0.5:
                    subject.work_ahead(at(end - 50))
        closed = zip(shuffled.poll(at(end + 50)), in_order.poll(at(end + 50)), strict=True)
        for one, other in closed:
            assert one.window_end_ns == other.window_end_ns == at(end)
            assert one.state_ns == other.state_ns
            assert [t.id for t in one.tracks] == [t.id for t in other.tracks]
            for a, b in zip(one.tracks, other.tracks, strict=True):
                np.testing.assert_array_equal(a.position, b.position)
                assert a.box == b.box


def test_work_for_later_windows_waits_while_a_decision_may_be_due() -> None:
    subject = pipeline(FakeFusionNetworks())
    subject.add_features(picture(60), at(65))
    assert subject.has_work_ahead
    assert not subject.work_ahead(at(100)), 'receipts are looked for at 102 ms'
    assert subject.work_ahead(at(70))
    assert len(subject.poll(at(102))) == 1
    steps = 0
    while subject.work_ahead(at(103)):
        steps += 1
    assert steps == 3
    assert not subject.has_work_ahead


def test_pictures_without_a_usable_grid_count_as_detected_and_that_is_said() -> None:
    subject = pipeline(FakeFusionNetworks())
    blind = [replace(u, grid=np.zeros((0, 0, 0), np.float16)) for u in pictures(20, 30)]
    decisions = fed(subject, blind)
    (person,) = decisions[-1].tracks
    assert person.box is not None
    assert person.box.x0 == pytest.approx(ENCODERS_OWN.x0, abs=3.0)
    assert any('camera units without a usable feature grid' in t for t in decisions[-1].degraded)
    assert subject.feature_fusion is not None
    assert subject.feature_fusion.refused.total() == 30


def test_when_the_clock_is_set_back_fusion_begins_anew() -> None:
    networks = FakeFusionNetworks()
    subject = pipeline(networks)
    fed(subject, pictures(60_020, 10))
    decisions = fed(subject, pictures(20, 10))
    assert decisions
    assert all(d.window_end_ns in networks.fused for d in decisions)
    subject.reset()
    assert not subject.has_work_ahead


def test_windows_that_overlap_too_much_are_refused() -> None:
    parameters = PipelineParameters(windows=WindowParameters(window=2.0, stride=0.05))
    networks = FeatureFusion(FakeFusionNetworks(), DecodingParameters(0.1))
    with pytest.raises(FusionError, match=r'2 s every 0\.05 s'):
        PerceptionPipeline(parameters, networks)
    PerceptionPipeline(parameters)


def followed(available: float, sequence: int, by: float, item: int = 1) -> UnitFeatures:
    """The object that the encoder remembers has moved to the right, by pixels."""
    x0, y0, x1, y1 = ENCODERS_OWN
    moved = Detection(Box(x0 + by, y0, x1 + by, y1), 0.9, 'person', item=item)
    unit_of = picture(available, sequence)
    return replace(unit_of, detections=(moved,), followed=True, grid=np.zeros((0, 0, 0)))


def remembered(available: float, sequence: int) -> UnitFeatures:
    own = Detection(ENCODERS_OWN, 0.9, 'person', item=1)
    return replace(picture(available, sequence), detections=(own,))


def test_in_followed_pictures_fused_detections_move_on_and_no_network_runs() -> None:
    networks = FakeFusionNetworks()
    subject = pipeline(networks)
    fed(subject, [remembered(20, 0), followed(53, 1, 5.0), followed(86, 2, 9.0), picture(120, 3)])
    boxes = [each.detections[0].box for each in tracker_units(subject, CAMERA)]
    assert [box.x0 - boxes[0].x0 for box in boxes] == pytest.approx([0.0, 5.0, 9.0])
    assert boxes[0] == pytest.approx(SEEN, abs=0.5)
    assert subject.feature_fusion is not None
    assert not subject.feature_fusion.refused


def too_slow_to_fuse(score: float = 0.9) -> tuple[PerceptionPipeline, list[Decision]]:
    """A pipeline that fuses a picture in 100 ms, as it knows, and ten windows of pictures."""
    subject, clock = pipeline(FakeFusionNetworks()), ManualClock(at(0))
    budget = subject.limit_time(clock.now_ns)
    decisions: list[Decision] = []
    for number in range(30):
        each = picture(20 + 33 * number, number)
        each = replace(each, detections=(replace(each.detections[0], score=score),))
        begun_ns = clock.ns = each.available_ns + 3 * MS
        subject.add_features(each, clock.ns)
        decisions += subject.poll(clock.ns)
        # Work that takes no time by this clock, and as long as ever by what is known of it.
        clock.ns += 100 * MS
        budget.ended('fusing', begun_ns)
    return subject, decisions


def test_pictures_that_cannot_be_fused_in_time_are_used_as_detected_before_they_are_old() -> None:
    subject, decisions = too_slow_to_fuse()
    ages = [d.window_end_ns - d.newest_ns[CAMERA] for d in decisions if CAMERA in d.newest_ns]
    assert len(ages) >= len(decisions) - 1
    assert max(ages) <= 250 * MS
    (person,) = decisions[-1].tracks
    assert person.box is not None
    assert person.box.x0 == pytest.approx(ENCODERS_OWN.x0, abs=5.0)
    # Those that stand between are left out, and no picture is used twice.
    taken = [u.sequence for u in tracker_units(subject, CAMERA)]
    assert taken == sorted(set(taken))
    assert subject.budget.shed['pictures'] >= 20


@pytest.mark.parametrize(('score', 'people'), [(0.6, 1), (0.35, 0)])
def test_what_an_encoder_alone_would_not_believe_begins_no_track(
    score: float, people: int
) -> None:
    _, decisions = too_slow_to_fuse(score)
    assert len(decisions[-1].tracks) == people
