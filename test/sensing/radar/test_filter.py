"""Plausibility of radar returns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from mmedge_ros.core.parameter import ParameterError, build, declared
from mmedge_ros.replay.bag import Bag
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.radar.filter import REASONS, RadarLimits, filter_returns
from mmedge_ros.sensing.radar.point_cloud import decode_points

NAN, INF = float('nan'), float('inf')
LIMITS = RadarLimits()


def returns(*rows: tuple[float, ...]) -> NDArray[np.float32]:
    return np.array(rows, np.float32).reshape(-1, 5)


GOOD = (5.0, 1.0, 0.2, -0.5, 14.0)


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize(
    ('bad', 'reason'),
    [
        ((NAN, 1, 0, 0, 10), 'non_finite'),
        ((5, INF, 0, 0, 10), 'non_finite'),
        ((5, 1, -INF, 0, 10), 'non_finite'),
        ((5, 1, 0, INF, 10), 'non_finite'),
        ((5, 1, 0, 0, INF), 'non_finite'),
        ((1e38, 1e38, 1e38, 0, 10), 'range'),
        ((1e-38, 1e-35, 0, 0, 10), 'range'),
        ((0.06, 0.24, 0.02, 0, 10), 'range'),
        ((61, 0, 0, 0, 10), 'range'),
        ((-5, 1, 0, 0, 10), 'azimuth'),
        ((0.1, 0.1, 5, 0, 10), 'elevation'),
        ((0.1, 0.1, -5, 0, 10), 'elevation'),
        ((5, 1, 0, 1.7e38, 10), 'velocity'),
        ((5, 1, 0, -41, 10), 'velocity'),
    ],
)
def test_a_return_outside_a_limit_is_dropped_for_that_reason(
    bad: tuple[float, ...], reason: str
) -> None:
    kept, dropped = filter_returns(returns(bad, GOOD), LIMITS)
    np.testing.assert_array_equal(kept, returns(GOOD))
    assert dropped == Counter({reason: 1})


def test_unknown_velocity_and_strength_are_kept_as_unknown() -> None:
    kept, dropped = filter_returns(returns((5, 1, 0, NAN, NAN)), LIMITS)
    np.testing.assert_array_equal(kept, returns((5, 1, 0, NAN, NAN)))
    assert not dropped


def test_rounding_errors_of_zero_are_no_garbage() -> None:
    good = returns((4.9, 5.6, 1.0, 9.4e-38, NAN), (3.5, -0.4, -2.6e-14, 0.6, NAN))
    kept, _ = filter_returns(good, LIMITS)
    np.testing.assert_array_equal(kept, good)


def test_the_limits_are_parameters() -> None:
    limits = build(RadarLimits, {'max_range': 4.0, 'min_range': 0.3})
    _, dropped = filter_returns(returns(GOOD, (3, 0, 0, 0, 5)), limits)
    assert dropped == Counter({'range': 1})
    with pytest.raises(ParameterError, match='max_range'):
        build(RadarLimits, {'max_range': -1.0})
    assert all(item.bounds.description for item in declared(RadarLimits))


def test_no_returns_are_no_returns() -> None:
    kept, dropped = filter_returns(returns(), LIMITS)
    assert kept.shape == (0, 5)
    assert not dropped


@pytest.mark.parametrize('shape', [(5,), (3, 4), (2, 5, 1)])
def test_another_shape_is_an_error(shape: tuple[int, ...]) -> None:
    with pytest.raises(SensingError, match=r'expected \(N, 5\)'):
        filter_returns(np.zeros(shape, np.float32), LIMITS)


@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(0, 12), st.just(5)),
        elements=st.floats(width=32) | st.floats(-70, 70, width=32),
    )
)
def test_whatever_comes_what_is_kept_lies_inside_and_all_are_accounted_for(
    scan: NDArray[np.float32],
) -> None:
    kept, dropped = filter_returns(scan, LIMITS)
    assert len(kept) + dropped.total() == len(scan)
    assert set(dropped) <= set(REASONS)
    assert np.isfinite(kept[:, :3]).all()
    assert not np.isinf(kept).any()
    distance = np.linalg.norm(kept[:, :3].astype(float), axis=1)
    assert ((distance >= LIMITS.min_range) & (distance <= LIMITS.max_range)).all()
    assert (kept[:, 0] > -1e-4).all()
    assert not (np.abs(kept[:, 3]) > LIMITS.max_speed).any()


@given(
    distance=st.floats(0.31, 59.9),
    azimuth=st.floats(-1.56, 1.56),
    elevation=st.floats(-1.39, 1.39),
    velocity=st.floats(-39.9, 39.9) | st.just(NAN),
)
def test_what_lies_inside_is_kept(
    distance: float, azimuth: float, elevation: float, velocity: float
) -> None:
    flat = distance * np.cos(elevation)
    point = (
        flat * np.cos(azimuth),
        flat * np.sin(azimuth),
        distance * np.sin(elevation),
        velocity,
        NAN,
    )
    kept, dropped = filter_returns(returns(point), LIMITS)
    np.testing.assert_array_equal(kept, returns(point))
    assert not dropped


def test_the_garbage_of_the_night_recording_is_dropped_and_nothing_else(
    data_folder: Path,
) -> None:
    with Bag(data_folder / 'millieye' / 'night_walk') as bag:
        scans = [
            decode_points(bag.deserialize(message)) for message in bag.messages(['/radar/points'])
        ]
    # The first scan: five real returns, sixteen of garbage, all of it at no possible range.
    kept, dropped = filter_returns(scans[0], LIMITS)
    np.testing.assert_array_equal(kept, scans[0][:5])
    assert dropped == Counter({'range': 16})
    # After that only the coupling of the antennas, which is a quarter of a metre away.
    rest = np.concatenate(scans[1:])
    kept, dropped = filter_returns(rest, LIMITS)
    distance = np.linalg.norm(rest[:, :3], axis=1)
    np.testing.assert_array_equal(kept, rest[distance > 0.3])
    assert dropped == Counter({'range': 332})
    assert len(kept) == 9103 - 21 - 332
