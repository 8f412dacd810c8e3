"""Live: the encoder knows whether its pictures are simulated, and warns if its model is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmedge_ros.ros.encoder_setup import EncoderWatch, UnitEncoderParameters
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.graph.perception_graph import perception_graph


class QuietWatch:
    """Misses what a test says."""

    def __init__(self, *missing: str) -> None:
        self._missing = list(missing)

    def missing(self) -> list[str]:
        return self._missing


@pytest.fixture
def walkers(tmp_path: Path) -> str:
    (tmp_path / 'manifest.yaml').write_text(
        'name: walkers\ndomain: simulated\n'
        f'camera: {{levels: {{small: {{weights: w.onnx, sha256: "{"0" * 64}"}}}}}}\n'
    )
    return str(tmp_path)


def test_the_diagnostics_of_a_real_camera_tell_of_a_simulated_detector(walkers: str) -> None:
    watch = EncoderWatch(QuietWatch('no camera'), UnitEncoderParameters(detector=walkers))
    first, second = watch.missing()
    assert first == 'no camera'
    assert second == watch.warning
    assert "'walkers' has only ever seen simulated people" in second


@pytest.mark.parametrize('modality', ['camera', 'radar'])
def test_simulated_pictures_and_radars_are_not_warned_of(walkers: str, modality: str) -> None:
    simulated = modality == 'camera'
    p = UnitEncoderParameters(modality=modality, detector=walkers, simulated=simulated)
    assert EncoderWatch(QuietWatch(), p).missing() == []


@pytest.mark.parametrize('simulated', [False, True])
def test_the_graph_tells_all_who_choose_a_model_what_its_pictures_are(simulated: bool) -> None:
    nodes = perception_graph(GraphOptions(detector='x', simulated=simulated))
    told = {node.name: node.parameters.get('simulated') for node in nodes}
    assert told['camera_encoder'] is simulated
    # A bundle may bring networks for the radar and for fusion: all must choose the same one.
    assert told['radar_encoder'] is simulated
    assert told['fusion'] is simulated
