"""The bench of drift: delays of alarms on changed flights, and alarms in vain."""

from __future__ import annotations

import json
from pathlib import Path

from hand_made_pictures import second, usual_pictures, usual_seconds
from painted_flight import write_painted_flight, write_painted_set
from tiny_bundle import write_tiny_bundle
from typer.testing import CliRunner

from mmedge_lab.commands.bench import bench_app
from mmedge_lab.commands.train import train_app
from mmedge_lab.judging.picture_seconds import SeenSecond
from mmedge_lab.rivals.mmedge.drift_bench import (
    AS_IT_IS,
    CHANGES,
    OURS,
    FlightSeconds,
    drift_report,
    ours,
    rivals,
)
from mmedge_ros.encoding.usual_pictures import read_usual_pictures

FOG = 'fog, 30 % of the contrast'


def flight(name: str, seed: int = 0, **shares: float) -> FlightSeconds:
    """Ten seconds as they are, and with shares of the contrast left by change."""
    looks = usual_seconds(10, seed)

    def seconds(share: float) -> list[SeenSecond]:
        return [SeenSecond(second(look * (1.0, share, 1.0)), look) for look in looks]

    changed = {change: seconds(share) for change, share in shares.items()}
    return FlightSeconds(name, {AS_IT_IS: seconds(1.0), **changed})


def test_a_changed_flight_is_noticed_and_the_same_as_it_is_is_not() -> None:
    judged = [flight('a', 1, **{FOG: 0.3}), flight('b', 2), flight('c', 3, **{FOG: 0.95})]
    report = drift_report([ours(usual_pictures())], judged)
    assert (report['flights'], report['seconds']) == (3, 30)
    rows = {(row['method'], row['pictures']): row for row in report['rows']}
    assert set(rows) == {(OURS, AS_IT_IS), (OURS, FOG)}
    assert rows[OURS, AS_IT_IS]['alarms'] == 0
    assert 0.0 <= rows[OURS, AS_IT_IS]['nearest'] < 1.0
    fog = rows[OURS, FOG]
    assert (fog['flights'], fog['alarms'], fog['in_time']) == (2, 1, 1)
    assert fog['by_flight'] == {'a': fog['latest_s'], 'c': None}


def test_rivals_are_fitted_to_calibration_flights_and_notice_fog_too() -> None:
    calibration = [flight(f'{n}', n) for n in range(12)]
    found = rivals(calibration, has_vectors=True)
    assert len(found) == 4
    assert rivals([], has_vectors=True) == []
    report = drift_report(found, [flight('a', 20, **{FOG: 0.3})])
    delays = {row['method']: row['latest_s'] for row in report['rows'] if row['pictures'] == FOG}
    assert delays['contrast'] is not None
    assert delays['Mahalanobis of brightness, contrast, sharpness'] is not None


def test_a_bundle_learns_what_is_usual_and_is_judged_by_it(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    flight = write_painted_flight(tmp_path / 'judged' / 'one', pictures=12)
    train = ['--train', str(flight)] * 10
    done = CliRunner().invoke(train_app, ['pictures', str(bundle), *train, '--every', '2'])
    assert done.exit_code == 0, done.output
    usual = read_usual_pictures(bundle)
    assert usual is not None
    assert len(usual.seconds) == 20
    given = ['drift', str(tmp_path / 'judged'), '--detector', str(bundle), '--pictures', '2']
    result = CliRunner().invoke(bench_app, [*given, '--out', str(tmp_path / 'out')])
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / 'out' / 'drift.json').read_text())
    assert set(report['people']) == {AS_IT_IS, *CHANGES}
    assert [row['pictures'] for row in report['rows']] == [AS_IT_IS, *CHANGES]


def test_a_bundle_that_knows_nothing_is_refused_with_the_remedy(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    write_painted_flight(tmp_path / 'judged' / 'one', pictures=2)
    given = ['drift', str(tmp_path / 'judged'), '--detector', str(bundle)]
    result = CliRunner().invoke(bench_app, [*given, '--out', str(tmp_path / 'out')])
    assert result.exit_code == 1
    assert 'mmedge lab train pictures' in result.stderr


def test_few_flights_say_nothing_of_what_is_usual(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    calibration = write_painted_set(tmp_path / 'calibration', flights=2, pictures=2)
    done = CliRunner().invoke(train_app, ['pictures', str(bundle), '--train', str(calibration)])
    assert done.exit_code == 1
    assert 'at least 10' in done.stderr
    train = ['--train', str(calibration / 'flight_0')] * 10
    done = CliRunner().invoke(train_app, ['pictures', str(bundle), *train])
    assert done.exit_code == 1
    assert 'fewer than five pictures a second' in done.stderr
