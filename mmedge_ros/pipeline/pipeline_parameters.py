"""The parameters of the perception pipeline."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.pipeline.window_assembler import WindowParameters
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters
from mmedge_ros.tracking.tracker import TrackerParameters
from mmedge_ros.windows.early_decision import SceneChangeParameters
from mmedge_ros.windows.feature_fusion import FeatureFusionParameters
from mmedge_ros.windows.skip_control import SkipParameters

AUTO, DECISION, FEATURE = 'auto', 'decision', 'feature'


@dataclass(frozen=True)
class PipelineParameters:
    """Everything that shapes a decision."""

    modalities: tuple[str, ...] = parameter(
        (CAMERA, RADAR), 'sensors that should be there; a silent one is reported lost'
    )
    # A radar scan is fused with the camera unit that follows within this (s).
    pairing: float = 0.1
    # Units that come later than this (s) after newer ones are not used.
    lag: float = 0.5
    time_offset: float = parameter(
        0.0,
        'how much later stamps of the radar are than those of the camera, as `mmedge calibrate` '
        'measures it; taken off the later ones: positive off those of the radar, negative off '
        'those of the camera',
        's',
        -0.5,
        0.5,
    )
    strategy: str = parameter(
        AUTO,
        'how the sensors are fused: by the networks of the bundle (feature), without any '
        '(decision), or by the networks where the bundle has them (auto)',
        choices=(AUTO, DECISION, FEATURE),
    )
    updates: bool = parameter(
        True, 'publish the tracks as each picture completes, too, and not only as windows end'
    )
    windows: WindowParameters = group(WindowParameters)
    features: FeatureFusionParameters = group(FeatureFusionParameters)
    fusion: DecisionFusionParameters = group(DecisionFusionParameters)
    tracker: TrackerParameters = group(TrackerParameters)

    skipping: SkipParameters = group(SkipParameters)
    scene_change: SceneChangeParameters = group(SceneChangeParameters)

    def tracking(self, feature_fusion: bool) -> TrackerParameters:
        """Return how detections are tracked that come from feature fusion, or from encoders."""
        if not feature_fusion:
            return self.tracker
        begin = min(self.tracker.high_score, self.features.begin_score)
        return replace(self.tracker, high_score=begin)
