"""Seconds of recorded pictures, as they are and changed; and bounds that are fitted to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hand_made_pictures import usual_seconds
from painted_flight import write_painted_flight

from mmedge_lab.judging.picture_seconds import (
    appearances,
    fitted_bounds,
    flicker,
    flight_seconds,
    fog,
    haze,
    left_out_distances,
    repeated,
    same,
)
from mmedge_ros.data_types import OF_WHOLE_PICTURE
from mmedge_ros.encoding.picture_drift import Excess


def test_changes_do_to_pictures_what_they_say(tmp_path: Path) -> None:
    flight = write_painted_flight(tmp_path / 'f', pictures=15, seen=[])
    changes = {'same': same, 'fog': fog(0.3), 'haze': haze(0.5), 'flicker': flicker(0.2)}
    found = flight_seconds(flight, changes)
    assert [len(seconds) for seconds in found.values()] == [2] * 4
    looks = {name: appearances(seconds)[0][:OF_WHOLE_PICTURE] for name, seconds in found.items()}
    assert looks['fog'] / looks['same'] == pytest.approx([1.57, 0.3, 1.0], rel=0.1)
    assert looks['haze'] / looks['same'] == pytest.approx([1.0, 0.5, 1.0], rel=0.1)
    assert found['flicker'][0].second.flicker > 10 * found['same'][0].second.flicker


def test_a_network_looks_at_the_first_picture_of_each_second(tmp_path: Path) -> None:
    flight = write_painted_flight(tmp_path / 'f', pictures=25, seen=[])
    shown: list[int] = []

    def look(picture: np.ndarray) -> np.ndarray:
        shown.append(picture.shape[0])
        return np.array([len(shown)])

    seconds = flight_seconds(flight, {'': same}, 2, look)['']
    assert [seen.vector.tolist() for seen in seconds] == [[1], [2], [3]]
    # Five pictures of a second say whether it flickers; of the last there are three.
    assert [np.isnan(seen.second.flicker) for seen in seconds] == [False, False, True]


def test_no_flight_that_was_fitted_to_raises_an_alarm() -> None:
    random = np.random.default_rng(2)
    flights = [level + 0.1 * random.standard_normal(10) for level in (0.2, 0.5, 0.4)]
    bounds = fitted_bounds(flights)
    assert bounds.limit == pytest.approx(flights[1].mean())
    for values in flights:
        excess = Excess(bounds)
        assert not any(excess.take(value) for value in repeated(values.tolist()))
    excess = Excess(bounds)
    assert any(excess.take(2.0 * bounds.limit) for _ in range(20))


def test_a_flight_is_compared_with_the_others_and_not_with_itself() -> None:
    alike = [usual_seconds(20, seed) for seed in range(4)]
    distances = left_out_distances([*alike, 3.0 * usual_seconds(20, 9)])
    assert max(float(d.mean()) for d in distances[:4]) < 0.5
    assert distances[4].mean() > 1.0


def test_short_flights_are_repeated_for_a_minute_and_long_ones_are_not() -> None:
    assert repeated([1, 2, 3, 4, 5, 6, 7])[-4:] == [1, 2, 3, 4]
    assert len(repeated([1] * 90)) == 90
