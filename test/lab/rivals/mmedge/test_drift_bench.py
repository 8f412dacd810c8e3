"""Usual pictures are fitted to calibration flights; changed ones raise an alarm, others do not."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from painted_flight import write_painted_flight, write_painted_set
from tiny_bundle import write_tiny_bundle
from typer.testing import CliRunner

from mmedge_lab.commands.train import train_app
from mmedge_lab.judging.bench import BenchRequest
from mmedge_lab.judging.run_bench import judge
from mmedge_lab.rivals.mmedge.drift_bench import (
    AS_IT_IS,
    CHANGES,
    bench,
    flicker,
    fog,
    haze,
)
from mmedge_lab.training.picture_fit import fitted_bounds, flight_seconds, same
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.picture_drift import Excess, read_usual_pictures
from mmedge_ros.encoding.unit_encoder import appearance_of


def test_changes_do_to_pictures_what_they_say(tmp_path: Path) -> None:
    flight = write_painted_flight(tmp_path / 'f', pictures=15, seen=[])
    changes = {'same': same, 'fog': fog(0.3), 'haze': haze(0.5), 'flicker': flicker(0.2)}
    seconds = flight_seconds(flight, changes)
    assert [len(of) for of in seconds.values()] == [2] * 4
    looks = {name: of[0].look for name, of in seconds.items()}
    assert looks['fog'] / looks['same'] == pytest.approx([1.57, 0.3, 1.0], rel=0.1)
    assert looks['haze'] / looks['same'] == pytest.approx([1.0, 0.5, 1.0], rel=0.1)
    assert seconds['flicker'][0].flicker > 10 * seconds['same'][0].flicker


def test_no_flight_that_was_fitted_to_raises_an_alarm() -> None:
    random = np.random.default_rng(2)
    flights = [level + 0.1 * random.standard_normal(10) for level in (0.2, 0.5, 0.4)]
    bounds = fitted_bounds(flights)
    assert bounds.limit == pytest.approx(flights[1].mean())
    for values in flights:
        excess = Excess(bounds)
        assert not any(excess.take(value) for value in np.resize(values, 60))
    excess = Excess(bounds)
    assert any(excess.take(2.0 * bounds.limit) for _ in range(20))


def test_a_bundle_learns_what_is_usual_and_is_judged_by_it(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    flight = write_painted_flight(tmp_path / 'judged' / 'one', pictures=12)
    request = BenchRequest((tmp_path / 'judged',), str(bundle), tmp_path)
    with pytest.raises(EncodingError, match='mmedge lab train fit pictures'):
        bench(request)
    train = ['--train', str(flight)] * 10
    done = CliRunner().invoke(train_app, ['fit', 'pictures', str(bundle), *train])
    assert done.exit_code == 0, done.output
    usual = read_usual_pictures(bundle)
    assert usual is not None
    assert len(usual.seconds) == 20
    results = judge(bench(request), tmp_path).results
    assert set(results) == set(CHANGES)
    assert results[AS_IT_IS][0]['flights'] == 1


def test_single_pictures_of_ones_own_are_usual_too(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    flight = write_painted_flight(tmp_path / 'one', pictures=12)
    own = tmp_path / 'own'
    (own / 'images').mkdir(parents=True)
    picture = np.random.default_rng(0).integers(0, 40, (48, 64, 3), np.uint8)
    for number in range(3):
        cv2.imwrite(str(own / 'images' / f'{number}.png'), picture)
    look = np.array(appearance_of(picture))
    distances = []
    for places in ([flight] * 10, [flight] * 10 + [own]):
        train = [word for place in places for word in ('--train', str(place))]
        done = CliRunner().invoke(train_app, ['fit', 'pictures', str(bundle), *train])
        assert done.exit_code == 0, done.output
        usual = read_usual_pictures(bundle)
        assert usual is not None
        distances.append(usual.distance(look))
    assert len(usual.seconds) == 23
    assert distances[0] > 0.1 > 0.01 > distances[1]


def test_few_flights_say_nothing_of_what_is_usual(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    calibration = write_painted_set(tmp_path / 'calibration', flights=2, pictures=2)
    done = CliRunner().invoke(
        train_app, ['fit', 'pictures', str(bundle), '--train', str(calibration)]
    )
    assert done.exit_code == 1
    assert 'at least 10' in done.stderr
    train = ['--train', str(calibration / 'flight_0')] * 10
    done = CliRunner().invoke(train_app, ['fit', 'pictures', str(bundle), *train])
    assert done.exit_code == 1
    assert 'fewer than five pictures a second' in done.stderr
