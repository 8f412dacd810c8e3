"""The accuracy of object memory and its rivals, from replays to kept sums."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_made_encoded_flight import encoded_flight
from hand_made_truth import scene, true_person
from tiny_bundle import write_tiny_bundle

from mmedge_lab.judging import EvaluationError, judged_rows
from mmedge_lab.judging.bundle_evaluation import NOMINAL
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.flight_bootstrap import Drawings
from mmedge_lab.judging.flight_sums import SummedFlights, Sums
from mmedge_lab.judging.judged_rows import FIGURES, RowBench, accuracy_report, sums_of
from mmedge_lab.rivals.smtm.reuse_bench import known_rows, replay_row
from mmedge_lab.rivals.smtm.reuse_rivals import EVERY, ROWS
from mmedge_ros.data_types import CAMERA, Box
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.records.ground_truth import GroundTruth
from mmedge_ros.records.run_record import RunRecord
from mmedge_ros.report.accuracy import accuracy_of

LEVELS = {'small': 0.5, 'medium': 0.6, 'large': 0.7}


def played(name: str) -> RunRecord:
    """Two people who stand still for two seconds."""
    return replay_row(encoded_flight(lambda ms: 2), ROWS[name], PerceptionPipeline(), NOMINAL)


def test_sums_make_the_figures_of_a_run() -> None:
    boxes = [Box(100.0 + 120 * n, 165.0, 150.0 + 120 * n, 315.0) for n in range(2)]
    people = [true_person(n + 1, box) for n, box in enumerate(boxes)]
    truth = GroundTruth([scene(ms, *people) for ms in range(0, 2001, 10)])
    record = played(EVERY)
    accuracy = accuracy_of(record, truth, at_once=False)
    assert accuracy is not None
    flights = SummedFlights({EVERY: [sums_of(accuracy, record)]}, Drawings.of(['1']), FIGURES)
    report, tracking = accuracy.report(), accuracy.tracking
    for name in ('streaming_mean_iou', 'mean_iou', 'precision', 'recall'):
        assert flights.estimate(EVERY, name).value == pytest.approx(report[name])
    assert flights.estimate(EVERY, 'idf1').value == pytest.approx(tracking.idf1)
    assert flights.estimate(EVERY, 'mota').value == pytest.approx(tracking.mota)
    assert flights.estimate(EVERY, 'nees').value == pytest.approx(report['nees']['mean'])


def test_rivals_encode_half_of_the_pictures_and_fill_in_without_delay() -> None:
    pictures = [f for f in played('held n=2').features if f.modality == CAMERA]
    followed = [f for f in pictures if f.followed]
    assert 0.4 < len(followed) / len(pictures) < 0.5
    for of in followed:
        assert of.trail[-1].stage == 'follow'
        assert of.trail[-1].end_ns == of.trail[-1].begin_ns


def test_a_row_by_rate_leaves_pictures_out() -> None:
    every, half = (
        sum(f.modality == CAMERA for f in played(name).features) for name in (EVERY, '15 Hz')
    )
    assert half == pytest.approx(every / 2, abs=1)


def test_differences_are_to_every_picture_encoded() -> None:
    def sums(overlap: float) -> Sums:
        columns = {c for figure in FIGURES.values() for c in (figure.above, figure.below)}
        return dict.fromkeys(columns, 1.0) | {'stream_overlap': overlap, 'streamed': 10.0}

    flights = SummedFlights(
        {EVERY: [sums(5.0), sums(9.0)], '10 Hz': [sums(4.0), sums(8.0)]},
        Drawings.of(['1', '2']),
        FIGURES,
    )
    row = accuracy_report(flights, EVERY)['10 Hz']['streaming_mean_iou']
    assert row['value'] == pytest.approx(0.6)
    assert row['difference'] == pytest.approx({'value': -0.1, 'low': -0.1, 'high': -0.1})


def test_a_flight_is_judged_once_for_each_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[list[str]] = []

    def judge(flight, bundle, rows, replay, on_progress):  # type: ignore[no-untyped-def]
        judged.append([row.name for row in rows])
        return {row.name: {'streamed': float(len(judged))} for row in rows}

    monkeypatch.setattr(judged_rows, 'judged_flight', judge)
    flight = tmp_path / 'flight'
    flight.mkdir()
    (flight / 'bag').write_text('recorded')

    def sums(digest: str, *names: str) -> dict[str, Sums]:
        bundle = BundleUnderTest(tmp_path, NOMINAL, digest)
        rows = tuple(ROWS[name] for name in names)
        return RowBench(bundle, rows, tmp_path / 'kept', replay_row).sums(flight)

    first = sums('a', EVERY)
    assert sums('a', EVERY, '10 Hz')[EVERY] == first[EVERY]
    assert judged == [[EVERY], ['10 Hz']]
    sums('another bundle', EVERY)
    assert judged[2:] == [[EVERY]]
    (flight / 'bag').write_text('another')
    sums('another bundle', EVERY)
    assert judged[3:] == [[EVERY]]


def test_every_picture_is_always_among_the_rows(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny', LEVELS)
    assert [row.name for row in known_rows(['10 Hz'], bundle)] == [EVERY, '10 Hz']
    assert [row.name for row in known_rows([], bundle)] == list(ROWS)
    with pytest.raises(EvaluationError, match="no row '12 Hz'; there are medium"):
        known_rows(['12 Hz'], bundle)


def test_a_bundle_without_a_level_of_a_row_is_named(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny', {'small': 0.5, 'medium': 0.6})
    assert known_rows(['small n=2'], bundle)
    with pytest.raises(EvaluationError, match="no camera level 'large'"):
        known_rows(['large n=2'], bundle)
