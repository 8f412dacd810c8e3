"""What the fusion node tells of its gate and of its pictures."""

from __future__ import annotations

from pathlib import Path

from diagnostic_msgs.msg import DiagnosticStatus
from gated_bundle import write_gated_bundle
from hand_made_decisions import a_decision
from hand_made_pictures import fly, usual_pictures

from mmedge_ros.clock import SystemClock
from mmedge_ros.encoding.picture_drift import PictureDrift
from mmedge_ros.pipeline.decision_worker import DecisionWorker
from mmedge_ros.pipeline.fusion_strategy import open_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.ros.diagnostics import level_of
from mmedge_ros.ros.fusion_status import FusionStatus
from mmedge_ros.skipping.early_decision import GatedDecision


class Inputs:
    """An input that may be silent."""

    def __init__(self, *missing: str) -> None:
        self._missing = list(missing)

    def missing(self) -> list[str]:
        return list(self._missing)


def figures(status: FusionStatus, pipeline: PerceptionPipeline) -> dict[str, object]:
    return status.figures(DecisionWorker(pipeline, SystemClock(), lambda _: None))


def test_without_a_gate_nothing_is_told_of_one() -> None:
    pipeline = PerceptionPipeline()
    status = FusionStatus(pipeline, Inputs('no camera input'))
    status.published(a_decision())
    found = figures(status, pipeline)
    assert (found['decisions'], found['degraded']) == (1, 'no odometry')
    assert not [name for name in found if name.startswith(('gate', 'early', 'lease'))]
    assert status.missing() == ['no camera input']


def test_a_gate_that_audits_have_switched_off_is_a_warning(tmp_path: Path) -> None:
    pipeline = open_pipeline(write_gated_bundle(tmp_path / 'm'), PipelineParameters())
    assert isinstance(pipeline.early_decision, GatedDecision)
    status = FusionStatus(pipeline, Inputs('no radar input'))
    status.published(a_decision())
    found = figures(status, pipeline)
    assert (found['gate_threshold'], found['gate_off'], found['early']) == ('0.9', False, 0)
    assert found['gate_audit_loss'] == 'nan'
    assert status.missing() == ['no radar input']
    pipeline.early_decision.control.audited(0.0)
    while not pipeline.early_decision.control.status.is_off:
        pipeline.early_decision.control.audited(1.0)
    status.published(a_decision())
    first, second = status.missing()
    assert first == 'no radar input'
    assert 'the gate is switched off' in second
    found = figures(status, pipeline)
    assert (found['gate_threshold'], found['gate_off']) == ('inf', True)
    assert found['gate_alarms'] == 3
    assert 0.0 < float(str(found['gate_audit_loss'])) < 1.0


def test_pictures_unlike_the_calibration_flights_are_a_warning_and_no_fault() -> None:
    drift = PictureDrift(usual_pictures())
    pipeline = PerceptionPipeline(drift=drift)
    status = FusionStatus(pipeline, Inputs())
    assert status.missing() == []
    fly(drift, 20.0, contrast=0.3)
    (words,) = status.missing()
    assert words.startswith('pictures are unlike')
    assert level_of([words]) == DiagnosticStatus.WARN
    assert figures(status, pipeline)['picture_alarms'] == 1


def test_with_a_gate_it_is_said_that_no_sensor_rests_meanwhile(tmp_path: Path) -> None:
    pipeline = open_pipeline(write_gated_bundle(tmp_path / 'm'), PipelineParameters())
    pipeline.drift = PictureDrift(usual_pictures())
    pipeline.drift.words = ('pictures are unlike',)
    status = FusionStatus(pipeline, Inputs())
    assert status.missing() == ['pictures are unlike', 'meanwhile no sensor rests']
