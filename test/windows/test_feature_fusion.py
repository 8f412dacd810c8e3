"""Units of overlapping windows, taken in one by one."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from fake_fusion_networks import FakeFusionNetworks
from hand_made_maps import Cell, camera_grid_with
from hand_made_units import MS, ManualClock, at, features, unit
from hypothesis import given, settings
from hypothesis import strategies as st

from mmedge_ros.core.clock import TimeBudget
from mmedge_ros.core.data_types import CAMERA, RADAR, Box, UnitFeatures
from mmedge_ros.encoding.feature_grid import CAMERA_GRID, RADAR_GRID
from mmedge_ros.geometry.sensor_poses import SensorGeometry, resolve_geometry
from mmedge_ros.geometry.transforms import TransformTree
from mmedge_ros.tracking import FusionError
from mmedge_ros.tracking.map_decoding import DecodingParameters
from mmedge_ros.windows.feature_fusion import FeatureFusion

BOX = Box(100.0, 165.0, 150.0, 315.0)
HERE: SensorGeometry = resolve_geometry(TransformTree())


def fusion(networks: FakeFusionNetworks | None = None) -> FeatureFusion:
    return FeatureFusion(networks or FakeFusionNetworks(), DecodingParameters(0.1))


def picture(
    available: float, sequence: int = 0, box: Box = BOX, delay: float = 5.0
) -> UnitFeatures:
    grid = camera_grid_with([Cell(box)])
    taken = unit(available, CAMERA, sequence, delay)
    return features(taken, grid=grid, image_size=(640, 480))


def scan(available: float, sequence: int = 0, delay: float = 5.0) -> UnitFeatures:
    taken = unit(available, RADAR, sequence, delay)
    return features(taken, grid=np.zeros(RADAR_GRID, np.float16))


class CountingNetworks(FakeFusionNetworks):
    """Keeps for each newest picture which scans it was fused with, each time."""

    def __init__(self) -> None:
        super().__init__()
        self.fusings = 0
        self.seen: dict[int, list[list[int]]] = {}

    def fuse(self, states) -> np.ndarray:
        self.fusings += 1
        newest_ns = states[CAMERA].taken[-1].stamp_ns
        scans = [taken.stamp_ns for taken in states[RADAR].taken]
        self.seen.setdefault(newest_ns, []).append(scans)
        return super().fuse(states)


def test_what_the_networks_see_replaces_each_new_picture() -> None:
    subject = fusion(FakeFusionNetworks(distance=7.0))
    other = Box(300.0, 100.0, 340.0, 200.0)
    for each in (picture(40, 0), scan(50), picture(70, 1, other), scan(90, 1)):
        assert subject.add(each, [at(100)], HERE)
    before, newest = subject.decide(at(100))
    assert [before.picture, newest.picture] == [picture(40, 0).key, picture(70, 1).key]
    (person,) = before.detections
    assert person.box == pytest.approx(BOX, abs=0.5)
    (person,) = newest.detections
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


def test_a_window_without_a_new_picture_has_no_result_and_costs_nothing() -> None:
    networks = FakeFusionNetworks()
    subject = fusion(networks)
    subject.add(picture(40), [at(100), at(200)], HERE)
    subject.add(scan(150), [at(200)], HERE)
    assert subject.decide(at(100))
    assert not subject.decide(at(200))
    assert not subject.decide(at(300))
    assert list(networks.fused) == [at(100)]


def test_all_but_the_newest_picture_are_fused_before_their_window_is_decided() -> None:
    networks = CountingNetworks()
    subject = fusion(networks)
    for each in (picture(20, 0), scan(30, 0), picture(50, 1), picture(80, 2)):
        subject.add(each, [at(100)], HERE)
    while subject.has_work:
        subject.work_ahead()
    assert networks.fusings == 2
    result = subject.decide(at(100))
    assert networks.fusings == 3
    assert [one.picture.sequence for one in result] == [0, 1, 2]


def test_a_picture_fused_ahead_is_fused_again_when_a_unit_before_it_comes_late() -> None:
    networks = CountingNetworks()
    subject = fusion(networks)
    for each in (picture(40, 0), picture(80, 1)):
        subject.add(each, [at(100)], HERE)
    while subject.has_work:
        subject.work_ahead()
    subject.add(scan(30, 0), [at(100)], HERE)
    subject.decide(at(100))
    assert networks.seen[at(35)] == [[], [at(25)]]


def test_a_picture_is_fused_with_what_was_measured_until_then() -> None:
    networks = CountingNetworks()
    subject = fusion(networks)
    for each in (picture(40, 0), scan(30, 0), scan(60, 1), picture(80, 1), scan(95, 2)):
        subject.add(each, [at(100)], HERE)
    subject.decide(at(100))
    # The newest is fused with all there is: nothing else will be said of it.
    assert networks.seen == {at(35): [[at(25)]], at(75): [[at(25), at(55), at(90)]]}


@pytest.mark.parametrize('ahead', [0, 1, 20], ids=['nothing done', 'a step done', 'all done'])
def test_a_unit_that_comes_after_a_newer_one_is_put_in_its_place(ahead: int) -> None:
    networks = FakeFusionNetworks(distance=7.0)
    subject = fusion(networks)
    ends = [at(100), at(200)]
    other = Box(300.0, 100.0, 340.0, 200.0)
    for each in (picture(60, 1, other), scan(50, 1), picture(40, 0), scan(30, 0)):
        assert subject.add(each, ends, HERE)
        for _ in range(ahead):
            subject.work_ahead()
    result = subject.decide(at(100))
    assert networks.fused[at(100)] == {CAMERA: [at(35), at(55)], RADAR: [at(25), at(45)]}
    # The newest picture is the one stamped last, not the one that came last.
    assert [one.picture for one in result] == [picture(40, 0).key, picture(60, 1).key]
    assert result[1].detections[0].box == pytest.approx(other, abs=0.5)
    assert not subject.refused


DRAWN = st.lists(
    st.tuples(st.sampled_from([CAMERA, RADAR]), st.integers(0, 500), st.integers(1, 150)),
    min_size=1,
    max_size=14,
)


@settings(deadline=None, max_examples=40)
@given(DRAWN, st.randoms(use_true_random=False))
def test_whatever_way_units_come_a_window_says_what_they_say_in_order(
    drawn: list[tuple[str, int, int]], random: Random
) -> None:
    networks = FakeFusionNetworks()
    subject = fusion(networks)
    units = [
        (picture if modality == CAMERA else scan)(available, number, delay=delay)
        for number, (modality, available, delay) in enumerate(drawn)
    ]
    to_come, known, reported = random.sample(units, len(units)), [], (-1, -1)
    for end in range(100, 1000, 100):
        # Some are never encoded, or when windows they belong to are decided already.
        ready = [unit for unit in to_come if unit.available_ns <= at(end)]
        for each in ready[: random.randint(0, len(ready))]:
            to_come.remove(each)
            known.append(each)
            subject.add(each, [e for e in contain(each) if e >= at(end)], HERE)
            for _ in range(random.randint(0, 2)):
                subject.work_ahead()
            if random.random() < 0.3:
                subject.advance(at(end))
        result = subject.decide(at(end))

        at_once = FakeFusionNetworks()
        batch = fusion(at_once)
        for each in sorted(known, key=lambda unit: (unit.stamp_ns, unit.sequence)):
            batch.add(each, [e for e in contain(each) if e == at(end)], HERE)
        expected = [
            one
            for one in batch.decide(at(end))
            if (one.picture.stamp_ns, one.picture.sequence) > reported
        ]
        assert list(result) == expected
        if expected:
            assert networks.fused[at(end)] == at_once.fused[at(end)]
            reported = expected[-1].picture.stamp_ns, expected[-1].picture.sequence
    assert not subject.refused


def contain(of: UnitFeatures) -> list[int]:
    """The ends of the windows of half a second that contain the arrival of a unit."""
    return [at(end) for end in range(100, 1100, 100) if at(end - 500) < of.available_ns <= at(end)]


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
    assert subject.decide(at(100))
    assert networks.fused[at(100)] == {CAMERA: [at(35)], RADAR: [at(55)]}
    assert subject.refused.total() == 1


def test_a_flood_is_worked_off_and_does_not_pile_up() -> None:
    networks = FakeFusionNetworks()
    subject = fusion(networks)
    ends = [at(100 * n) for n in range(1, 6)]
    for n in range(200):
        subject.add(scan(10 + 0.1 * n, n), ends, HERE)
    waiting = subject._bank.waiting
    assert waiting <= 250
    assert waiting + networks.steps.total() == 1000


def test_a_flood_of_ever_later_units_costs_no_more_than_one_in_order() -> None:
    networks = FakeFusionNetworks()
    subject = fusion(networks)
    ends = [at(100 * n) for n in range(1, 6)]
    for n in range(200):
        before = networks.steps.total()
        subject.add(scan(90 - 0.1 * n, n), ends, HERE)
        assert networks.steps.total() - before <= len(ends)
        subject.advance(ends[0])
        assert networks.steps.total() - before <= len(ends) + 30
    subject.add(picture(95), ends, HERE)
    assert subject.decide(ends[0])
    stamps = networks.fused[ends[0]][RADAR]
    assert len(stamps) == 200
    assert stamps == sorted(stamps)


def test_networks_of_another_version_are_found_out_at_the_start() -> None:
    class Wrong(FakeFusionNetworks):
        def fuse(self, state) -> np.ndarray:
            return super().fuse(state)[:48]

    fusion().warm_up()
    with pytest.raises(FusionError, match='48, 30, 40'):
        fusion(Wrong()).warm_up()


# ------------------------------------------------------------------------------ short time


class SlowNetworks(CountingNetworks):
    """Every picture takes 20 ms to be fused."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self._clock = clock

    def fuse(self, states) -> np.ndarray:
        self._clock.ns += 20 * MS
        return super().fuse(states)


def hurried(until: float) -> tuple[FeatureFusion, TimeBudget, ManualClock]:
    """Fusion that has learned how slow it is, at 302 ms, with a budget that ends then."""
    clock = ManualClock(at(0))
    subject, budget = fusion(SlowNetworks(clock)), TimeBudget(clock.now_ns)
    budget.begin(at(1000))
    subject.add(picture(40), [at(100)], HERE)
    subject.decide(at(100), budget)
    for number, available in enumerate((210, 240, 270), 1):
        subject.add(picture(available, number), [at(300), at(400)], HERE)
    clock.ns = at(302)
    budget.begin(at(until))
    return subject, budget, clock


def test_with_time_for_one_picture_it_is_the_newest_and_others_are_counted() -> None:
    subject, budget, clock = hurried(until=340)
    (fused,) = subject.decide(at(300), budget)
    assert fused.picture == picture(270, 3).key
    assert (subject.put_off, budget.shed['pictures']) == (frozenset(), 2)
    assert clock.ns <= at(340)
    assert subject.decide(at(400), budget) == ()


def test_without_time_for_any_the_next_window_decides_on_the_pictures() -> None:
    subject, budget, clock = hurried(until=310)
    assert subject.decide(at(300), budget) == ()
    assert (clock.ns, budget.shed['pictures']) == (at(302), 0)
    assert subject.put_off == {picture(a, n).key for n, a in ((1, 210), (2, 240), (3, 270))}
    budget.begin(at(1000))
    assert len(subject.decide(at(400), budget)) == 3


def test_where_time_was_short_the_newest_picture_is_fused_ahead_and_taken_as_it_is() -> None:
    subject, budget, clock = hurried(until=310)
    subject.decide(at(300), budget)
    while subject.has_work:
        subject.work_ahead(budget)
    # A scan that came since would change it, and there is no time to fuse again.
    subject.add(scan(390), [at(400)], HERE)
    begun_ns = clock.ns
    budget.begin(begun_ns + 5 * MS)
    assert subject.decide(at(400), budget)[-1].picture == picture(270, 3).key
    assert clock.ns == begun_ns
