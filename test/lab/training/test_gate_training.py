"""The samples that a gate is trained with."""

from __future__ import annotations

from hand_made_encoded_flight import encoded_flight

from mmedge_lab.judging.bundle_evaluation import NOMINAL
from mmedge_lab.training.gate_training import collect_samples, joined
from mmedge_lab.training.gates.closed_loop import LoopSettings
from mmedge_ros.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.skipping.gate_features import FIELDS
from mmedge_ros.skipping.skip_control import SkipParameters


def test_samples_are_features_with_what_would_have_come_of_a_yes() -> None:
    configuration = Configuration(
        1, 0, (ModalityConfiguration(CAMERA, 30.0), ModalityConfiguration(RADAR, 20.0))
    )
    settings = LoopSettings(configuration, NOMINAL, PipelineParameters(), SkipParameters())
    flights = [encoded_flight(lambda when: 2 + (when > 1290.0)), encoded_flight(lambda _: 1)]
    result = joined(
        [
            collect_samples(flight, number, settings, [configuration], (0.2, 0.8))
            for number, flight in enumerate(flights)
        ]
    )
    assert set(result.flights.tolist()) == {0, 1}
    assert result.features.shape == (len(result), len(FIELDS))
    assert result.of([1]).kept.mean() > result.of([0]).kept.mean()
    assert 0.0 <= result.kept.min() < result.kept.max() <= 1.0
