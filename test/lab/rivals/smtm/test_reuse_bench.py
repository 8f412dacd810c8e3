"""The accuracy of object memory and its rivals, from replays to kept sums."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_made_encoded_flight import encoded_flight
from hand_made_truth import scene, true_person
from tiny_bundle import write_tiny_bundle
from truth_fixtures import write_short_flights

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.accuracy_sums import FIGURES, accuracy_sums
from mmedge_lab.judging.bench import BenchRequest
from mmedge_lab.judging.bench_table import draw_figure
from mmedge_lab.judging.bundle_under_test import NOMINAL
from mmedge_lab.judging.flight_bootstrap import Drawings
from mmedge_lab.rivals.smtm.reuse_bench import bench, replay_row
from mmedge_lab.rivals.smtm.reuse_rivals import EVERY, ROWS
from mmedge_ros.core.data_types import CAMERA, Box
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.replay.ground_truth import GroundTruth
from mmedge_ros.report.accuracy import accuracy_of


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
    sums = accuracy_sums(accuracy, record)
    found = {
        name: draw_figure(figure, [sums], Drawings.of(['1'])).value
        for name, figure in FIGURES.items()
    }
    report, tracking = accuracy.report(), accuracy.tracking
    for name in ('streaming_mean_iou', 'mean_iou', 'precision', 'recall'):
        assert found[name] == pytest.approx(report[name])
    assert found['idf1'] == pytest.approx(tracking.idf1)
    assert found['mota'] == pytest.approx(tracking.mota)
    assert found['nees'] == pytest.approx(report['nees']['mean'])


def test_rivals_encode_half_of_the_pictures_and_fill_in_without_delay() -> None:
    pictures = [f for f in played('held n=2').features if f.modality == CAMERA]
    followed = [f for f in pictures if f.followed]
    assert 0.4 < len(followed) / len(pictures) < 0.5
    for of in followed:
        assert of.trail[-1].stage == 'follow'
        assert of.trail[-1].end_ns == of.trail[-1].begin_ns


def request(tmp_path: Path, levels: dict[str, float]) -> BenchRequest:
    bundle = write_tiny_bundle(tmp_path / 'tiny', levels)
    write_short_flights(tmp_path / 'set', 1, 0.6)
    return BenchRequest((tmp_path / 'set',), str(bundle))


def test_a_row_without_its_level_is_left_out_and_the_others_are_judged(tmp_path: Path) -> None:
    made = bench(request(tmp_path, {'small': 0.5, 'medium': 0.6}))
    assert {row.name for row in made.rows} == ROWS.keys() - {'large n=2'}
    assert made.notes is not None
    assert made.notes({}) == ["no row 'large n=2': the bundle lacks a level"]
    with pytest.raises(EvaluationError, match="no row 'large n=2'"):
        made.only(['large n=2'])
