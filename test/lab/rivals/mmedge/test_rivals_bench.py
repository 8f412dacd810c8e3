"""The bench of rivals: one row for each policy, on the same flights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bag_fixtures import write_bag
from hand_made_encoded_flight import encoded_flight
from hand_made_rivals import plugins_for
from hand_made_schedules import constant_profile
from hand_made_truth import BOX, film, true_person
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth
from typer.testing import CliRunner, Result

from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.judged_flight import CachedTruth, JudgedFlight
from mmedge_lab.policies.policy_run import run_policy
from mmedge_lab.policies.trained_rivals import write_rivals
from mmedge_lab.rivals.mmedge.rivals_bench import policy_sums
from mmedge_ros.commands.main import app

SHARES = ('--set', 'shares=100')


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_tiny_bundle(tmp_path / 'tiny')
    write_bag(tmp_path / 'set' / 'first', messages=recording_with_truth(0.8))
    return tmp_path


def run(place: Path, *arguments: object) -> Result:
    words = ['lab', 'bench', 'rivals', place / 'set', '--detector', place / 'tiny']
    words += ['--out', place / 'out', *arguments]
    return CliRunner().invoke(app, list(map(str, words)), env={'NO_COLOR': '1'})


def rows(place: Path) -> dict[str, dict[str, Any]]:
    content = json.loads((place / 'out' / 'rivals.json').read_text())
    return {row['name']: row['values'] for row in content['tables'][0]['rows']}


def test_ours_and_the_rows_asked_for_are_judged(place: Path) -> None:
    done = run(place, '--rows', 'non_blocking', *SHARES)
    assert done.exit_code == 0, done.output
    judged = rows(place)
    assert list(judged) == ['non_blocking', 'ours']
    for figure in ('streaming_mean_iou', 'latency_p95', 'age_p50', 'encodes', 'processor'):
        assert judged['ours'][figure]['value'] > 0.0
    assert run(place, '--rows', 'mine').exit_code == 1
    assert 'is no number from 1 to 100' in run(place, '--set', 'shares=all').stderr


def test_rivals_that_were_not_trained_are_not_measured_and_those_that_are_named_are(
    place: Path,
) -> None:
    asked = ('--rows', 'imputation,model_selection,ours_without_aggregation', *SHARES)
    without = run(place, *asked)
    assert without.exit_code == 0, without.output
    assert rows(place)['imputation'] == rows(place)['ours_without_aggregation'] == {}
    assert 'mmedge lab train fit imputer trains that of imputation' in without.stderr
    write_rivals(place / 'rivals', place / 'tiny', plugins_for(place / 'tiny'))
    with_them = run(place, *asked, '--set', f'trained={place / "rivals"}')
    assert with_them.exit_code == 0, with_them.output
    assert rows(place)['imputation']['recall']['value'] > 0.0


def test_everyone_in_a_dropped_window_is_missed(tmp_path: Path) -> None:
    profile = constant_profile(small=60.0, large=60.0)
    bundle = BundleUnderTest(write_tiny_bundle(tmp_path / 'tiny'), profile, 'slow')
    flight = encoded_flight(lambda _: 2, 2.0)
    truth = CachedTruth(film(lambda _: [true_person(1, BOX)], end=2000))
    opened = JudgedFlight(flight, truth, bundle, None)
    made = run_policy('blocking', flight, bundle)
    sums = policy_sums(made, opened, 0.05)
    assert sums['dropped'] == len(made.schedule.dropped) > 5
    assert sums['people'] == sums['windows'] == sums['dropped'] + sums['decisions']
    assert sums['late'] == sums['decisions']
