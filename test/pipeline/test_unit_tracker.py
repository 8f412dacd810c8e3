"""Each unit once and in its place, whatever order the units arrive in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from hand_made_units import FRAMES, MS, at
from hypothesis import given
from hypothesis import strategies as st

from mmedge_ros.core.data_types import CAMERA, RADAR, Appearance, Box, Measurement, UnitFeatures
from mmedge_ros.geometry.ground_plane import GroundPlane
from mmedge_ros.pipeline.unit_tracker import UnitTracker
from mmedge_ros.tracking.pairing import PairedUnits, pair_units
from mmedge_ros.tracking.tracker import Tracker

StepKey = tuple[float | None, tuple[float, ...]]


def measured(stamp: float, modality: str = CAMERA, sequence: int = 0) -> UnitFeatures:
    """An encoded unit measured at ``stamp`` ms."""
    return UnitFeatures(modality, sequence, at(stamp), at(stamp), FRAMES[modality], ())


def in_ms(stamp_ns: int) -> float:
    return (stamp_ns - at(0)) / MS


def key_of(units: PairedUnits) -> StepKey:
    return (
        None if units.camera is None else in_ms(units.camera.stamp_ns),
        tuple(in_ms(scan.stamp_ns) for scan in units.scans),
    )


def grouped(*units: UnitFeatures) -> list[StepKey]:
    return [key_of(group) for group in pair_units(units, 100 * MS)]


# ------------------------------------------------------------------------------ grouping


def test_a_scan_goes_with_the_camera_unit_that_follows() -> None:
    units = measured(0, RADAR), measured(40, RADAR), measured(50), measured(60, RADAR)
    assert grouped(*units) == [(50, (0, 40)), (None, (60,))]


def test_a_scan_too_long_before_the_camera_is_a_step_of_its_own() -> None:
    units = measured(0, RADAR), measured(60, RADAR), measured(101)
    assert grouped(*units) == [(None, (0,)), (101, (60,))]


def test_each_camera_unit_is_a_step_and_takes_only_the_scans_since_the_last() -> None:
    units = measured(0, RADAR), measured(10), measured(20), measured(30, RADAR), measured(40)
    assert grouped(*units) == [(10, (0,)), (20, ()), (40, (30,))]


# ------------------------------------------------------------------------------ order


@dataclass(frozen=True)
class History:
    """A tracker's state that remembers every step it was made by."""

    stamp_ns: int = 0
    next_id: int = 1
    steps: tuple[StepKey, ...] = ()


class Historian:
    """A tracker whose only memory is what it was given."""

    def step(
        self, state: Any, stamp_ns: int, measurements: Sequence[Any], *_of_units: Any
    ) -> History:
        assert stamp_ns >= state.stamp_ns
        steps = (*getattr(state, 'steps', ()), *measurements)
        return History(stamp_ns, state.next_id, steps)


def history_keeper(lag: float = 0.5) -> UnitTracker:
    def measure(units: PairedUnits, _ground: GroundPlane) -> list[Any]:
        return [key_of(units)]

    return UnitTracker(Historian(), measure, lag=lag)  # type: ignore[arg-type]


def history(tracker: UnitTracker) -> tuple[StepKey, ...]:
    return getattr(tracker.state, 'steps', ())


def undisturbed(units: Sequence[UnitFeatures]) -> tuple[StepKey, ...]:
    """What a stream in perfect order gives."""
    order = sorted(units, key=lambda u: (u.stamp_ns, u.modality == CAMERA, u.sequence))
    return tuple(key_of(group) for group in pair_units(order, 100 * MS))


@st.composite
def shuffled_units(draw: st.DrawFn) -> list[list[UnitFeatures]]:
    """Batches of units that were all measured within the lag, in any order of arrival."""
    drawn = draw(
        st.lists(
            st.tuples(st.integers(0, 499), st.sampled_from([CAMERA, RADAR])),
            min_size=1,
            max_size=15,
        )
    )
    units = [measured(ms, modality, n) for n, (ms, modality) in enumerate(drawn)]
    arrivals = draw(st.permutations(units))
    cuts = sorted(draw(st.sets(st.integers(0, len(units)))) | {0, len(units)})
    return [list(arrivals[a:b]) for a, b in pairwise(cuts)]


@given(shuffled_units())
def test_any_order_of_arrival_within_the_lag_gives_the_same_result(
    batches: list[list[UnitFeatures]],
) -> None:
    tracker = history_keeper()
    for batch in batches:
        tracker.update(batch)
    assert history(tracker) == undisturbed([unit for batch in batches for unit in batch])
    assert tracker.too_late == 0


@given(st.lists(st.tuples(st.integers(0, 499), st.integers(0, 499)), min_size=1, max_size=80))
def test_a_long_stream_whose_units_come_within_the_lag_is_as_one_in_order(
    delays: list[tuple[int, int]],
) -> None:
    arrivals = []
    for n, (camera_delay, radar_delay) in enumerate(delays):
        arrivals.append((50 * n + camera_delay, measured(50 * n, CAMERA, n)))
        arrivals.append((40 * n + radar_delay, measured(40 * n, RADAR, n)))
    arrivals.sort(key=lambda arrival: arrival[0])
    tracker = history_keeper()
    for _, unit in arrivals:
        tracker.update([unit])
    assert history(tracker) == undisturbed([unit for _, unit in arrivals])
    assert tracker.too_late == 0
    assert len(tracker._pairing._units) < 60


def test_a_scan_is_remembered_until_no_camera_unit_can_join_it() -> None:
    tracker = history_keeper()
    tracker.update([measured(0, RADAR)])
    tracker.update([measured(540, RADAR)])
    tracker.update([measured(60)])
    assert history(tracker) == ((60, (0,)), (None, (540,)))


def test_units_that_come_too_late_are_counted_and_not_used() -> None:
    tracker = history_keeper()
    tracker.update([measured(1000)])
    tracker.update([measured(500), measured(-1e9), measured(501)])
    assert history(tracker) == ((501, ()), (1000, ()))
    assert tracker.too_late == 2


def test_before_all_that_is_remembered_a_late_unit_goes_on_from_what_is_settled() -> None:
    tracker = history_keeper()
    for stamp in (0, 1000, 700):
        tracker.update([measured(stamp)])
    assert history(tracker) == ((0, ()), (700, ()), (1000, ()))


def test_nothing_is_done_again_without_need() -> None:
    calls = []

    def measure(units: PairedUnits, _ground: GroundPlane) -> list[Any]:
        calls.append(key_of(units))
        return []

    tracker = UnitTracker(Historian(), measure)  # type: ignore[arg-type]
    for n in range(20):
        tracker.update([measured(50 * n, CAMERA, n)])
    tracker.update([])
    assert calls == [(50 * n, ()) for n in range(20)]


def test_a_flood_of_units_with_one_stamp_does_not_fill_the_memory() -> None:
    tracker = history_keeper()
    for n in range(0, 5000, 100):
        tracker.update([measured(0, CAMERA, n + k) for k in range(100)])
    assert len(tracker._pairing._units) <= 1000


# ------------------------------------------------------------------------------ tracks


def test_only_a_picture_that_was_encoded_counts_as_a_miss() -> None:
    person = Measurement(
        at(0), 'person', 0.9, Box(0, 0, 10, 20), np.array([5.0, 0.0, 0.0]), np.eye(3), np.nan, 0.1,
        np.zeros(3), (CAMERA,), 'height',
    )  # fmt: skip
    tracker = UnitTracker(Tracker(), lambda group, _: [person] if group.stamp_ns == at(0) else [])
    tracker.update([measured(0)])
    (begun,) = tracker.state.tracks
    tracker.update([replace(measured(33, sequence=1), followed=True)])
    assert tracker.state.tracks[0].evidence == begun.evidence
    tracker.update([measured(66, sequence=2)])
    assert tracker.state.tracks[0].evidence < begun.evidence


def test_a_picture_that_shows_nothing_says_nothing_of_who_is_there() -> None:
    person = Measurement(
        at(0), 'person', 0.9, Box(0, 0, 10, 20), np.array([5.0, 0.0, 0.0]), np.eye(3), np.nan, 0.1,
        np.zeros(3), (CAMERA,), 'height',
    )  # fmt: skip
    left = []
    for contrast in (0.01, 0.05, 0.2):
        tracker = UnitTracker(
            Tracker(), lambda group, _: [person] if group.stamp_ns == at(0) else []
        )
        tracker.update([measured(0)])
        looks = Appearance(0.5, contrast, 0.1)
        tracker.update([replace(measured(33, sequence=1), appearance=looks)])
        left.append(tracker.state.tracks[0].evidence)
    assert left[0] == 1.0
    assert left[0] > left[1] > left[2]


def test_what_was_learned_of_the_ground_does_not_depend_on_the_order_of_arrival() -> None:
    def measure(units: PairedUnits, ground: GroundPlane) -> list[Any]:
        row, innovation = np.array([[1.0, 0.0, 0.0]]), np.array([in_ms(units.stamp_ns) / 1000.0])
        ground.learn(units.stamp_ns, np.zeros(3), row, innovation, np.array([0.1]))
        return [ground.view(units.stamp_ns, np.zeros(3)).place[2]]

    units = [measured(50.0 * n, sequence=n) for n in range(8)]
    plain, late = (UnitTracker(Historian(), measure, lag=1.0) for _ in range(2))  # type: ignore[arg-type]
    for unit in units:
        plain.update([unit])
    for number in (0, 2, 1, 5, 3, 4, 7, 6):
        late.update([units[number]])
    assert history(late) == history(plain)
