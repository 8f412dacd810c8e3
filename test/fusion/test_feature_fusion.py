"""Units of overlapping windows, taken in one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fake_fusion_networks import FakeFusionNetworks
from hand_made_maps import Cell, camera_grid_with
from hand_made_units import at, features, unit

from mmedge_ros.data_types import CAMERA, RADAR, Box, UnitFeatures
from mmedge_ros.encoding.feature_grid import CAMERA_GRID, RADAR_GRID
from mmedge_ros.fusion.errors import FusionError
from mmedge_ros.fusion.feature_fusion import FeatureFusion, FeatureFusionParameters
from mmedge_ros.fusion.geometry import SensorGeometry, resolve_geometry
from mmedge_ros.fusion.map_decoding import DecodingParameters
from mmedge_ros.fusion.transforms import TransformTree

BOX = Box(100.0, 165.0, 150.0, 315.0)
HERE: SensorGeometry = resolve_geometry(TransformTree())


def fusion(networks: FakeFusionNetworks | None = None) -> FeatureFusion:
    return FeatureFusion(networks or FakeFusionNetworks(), DecodingParameters(0.1))


def picture(available: float, sequence: int = 0, box: Box = BOX) -> UnitFeatures:
    grid = camera_grid_with([Cell(box)])
    return features(unit(available, CAMERA, sequence), grid=grid, image_size=(640, 480))


def scan(available: float, sequence: int = 0) -> UnitFeatures:
    return features(unit(available, RADAR, sequence), grid=np.zeros(RADAR_GRID, np.float16))


def test_what_the_networks_see_is_told_of_the_newest_picture() -> None:
    subject = fusion(FakeFusionNetworks(distance=7.0))
    other = Box(300.0, 100.0, 340.0, 200.0)
    for each in (picture(40, 0), scan(50), picture(70, 1, other), scan(90, 1)):
        assert subject.add(each, [at(100)], HERE)
    found = subject.decide(at(100))
    assert found is not None
    assert found.picture == picture(70, 1).key
    (person,) = found.detections
    assert person.box == pytest.approx(other, abs=0.5)
    assert person.distance == pytest.approx(7.0, rel=1e-4)


def test_each_unit_is_taken_once_into_each_of_its_windows() -> None:
    networks = FakeFusionNetworks()
    subject = fusion(networks)
    ends = [at(100 * n) for n in range(1, 6)]
    units = [picture(40), scan(50), picture(70, 1)]
    for each in units:
        subject.add(each, ends, HERE)
        subject.advance(ends[0])
    while subject.has_work:
        subject.work_ahead()
    for end in ends:
        subject.decide(end)
    expected = {(end, u.modality, u.stamp_ns) for end in ends for u in units}
    assert networks.steps == dict.fromkeys(expected, 1)


def test_work_for_later_windows_is_not_done_before_it_is_asked_for() -> None:
    networks = FakeFusionNetworks()
    subject = fusion(networks)
    for each in (picture(40), scan(50), picture(70, 1)):
        subject.add(each, [at(100), at(200), at(300)], HERE)
        subject.advance(at(100))
    assert {end for end, _, _ in networks.steps} == {at(100)}
    subject.decide(at(100))
    assert {end for end, _, _ in networks.steps} == {at(100)}
    subject.work_ahead()
    assert networks.order[-1] == (at(200), CAMERA, at(35))
    assert subject.has_work


def test_what_is_left_to_do_is_done_when_its_window_is_decided() -> None:
    networks = FakeFusionNetworks()
    subject = fusion(networks)
    for each in (picture(40), scan(50), picture(70, 1)):
        subject.add(each, [at(100), at(200)], HERE)
    assert subject.decide(at(200)) is not None
    assert networks.fused[at(200)] == {CAMERA: [at(35), at(65)], RADAR: [at(45)]}


def test_a_window_without_a_new_picture_has_no_result_and_costs_nothing() -> None:
    networks = FakeFusionNetworks()
    subject = fusion(networks)
    subject.add(picture(40), [at(100), at(200)], HERE)
    subject.add(scan(150), [at(200)], HERE)
    assert subject.decide(at(100)) is not None
    assert subject.decide(at(200)) is None
    assert subject.decide(at(300)) is None
    assert list(networks.fused) == [at(100)]


def test_windows_that_were_passed_over_are_forgotten() -> None:
    subject = fusion()
    for end in range(100, 600, 100):
        subject.add(picture(40 + end, end), [at(end), at(end + 100)], HERE)
    subject.decide(at(2000))
    assert not subject.has_work
    assert subject._windows == {}


def test_a_unit_that_comes_after_a_newer_one_is_not_used_and_counted() -> None:
    networks = FakeFusionNetworks()
    subject = fusion(networks)
    ends = [at(100), at(200)]
    for each in (picture(60, 1), picture(40, 0), scan(30), picture(60, 1)):
        assert subject.add(each, ends, HERE)
    subject.decide(at(200))
    assert networks.fused[at(200)] == {CAMERA: [at(55)], RADAR: [at(25)]}
    assert subject.refused == {'a camera unit that comes after a newer one': 2}


@pytest.mark.parametrize(
    'broken',
    [
        replace(picture(50), grid=np.zeros((0, 0, 0), np.float16)),
        replace(picture(50), grid=np.zeros((64, 40, 30), np.float16)),
        replace(picture(50), grid=np.full(CAMERA_GRID, np.nan, np.float16)),
        replace(picture(50), grid=np.full(CAMERA_GRID, -np.inf, np.float16)),
        replace(picture(50), image_size=(0, 480)),
        replace(picture(50), modality='lidar'),
        replace(scan(50), grid=np.zeros(CAMERA_GRID, np.float16)),
        replace(scan(50), grid=np.full(RADAR_GRID, np.nan, np.float16)),
    ],
)
def test_hostile_units_are_refused_and_the_rest_is_fused(broken: UnitFeatures) -> None:
    networks = FakeFusionNetworks()
    subject = fusion(networks)
    subject.add(picture(40), [at(100)], HERE)
    assert not subject.add(broken, [at(100)], HERE)
    subject.add(scan(60), [at(100)], HERE)
    assert subject.decide(at(100)) is not None
    assert networks.fused[at(100)] == {CAMERA: [at(35)], RADAR: [at(55)]}
    assert subject.refused.total() == 1


def test_a_flood_is_worked_off_and_does_not_pile_up() -> None:
    networks = FakeFusionNetworks()
    subject = fusion(networks)
    ends = [at(100 * n) for n in range(1, 6)]
    for n in range(200):
        subject.add(scan(10 + 0.1 * n, n), ends, HERE)
    waiting = sum(len(window.waiting) for window in subject._windows.values())
    assert waiting <= 250
    assert waiting + networks.steps.total() == 1000


def test_after_a_reset_older_units_are_taken_again() -> None:
    subject = fusion()
    subject.add(picture(60, 1), [at(100)], HERE)
    subject.reset()
    assert not subject.has_work
    subject.add(picture(40), [at(100)], HERE)
    found = subject.decide(at(100))
    assert found is not None
    assert found.picture == picture(40).key
    assert not subject.refused


def test_networks_of_another_version_are_found_out_at_the_start() -> None:
    class Wrong(FakeFusionNetworks):
        def fuse(self, state) -> np.ndarray:
            return super().fuse(state)[:48]

    fusion().warm_up()
    with pytest.raises(FusionError, match='48, 30, 40'):
        fusion(Wrong()).warm_up()


def test_the_bundle_says_the_threshold_unless_a_parameter_does() -> None:
    assert FeatureFusionParameters().decoding(0.23).threshold == 0.23
    assert FeatureFusionParameters(score_threshold=0.5).decoding(0.23).threshold == 0.5
