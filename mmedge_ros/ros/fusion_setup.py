"""Parameters of the fusion node, and the pipeline that they describe."""

from __future__ import annotations

from dataclasses import dataclass

from mmedge_ros.parameter import group, parameter
from mmedge_ros.pipeline.fusion_strategy import model_of_encoders, open_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.ros.rig_setup import frame_prefix, set_up_rig
from mmedge_ros.tracking import data_association


@dataclass(frozen=True)
class FusionParameters:
    """The fusion node."""

    detector: str = parameter(
        '',
        'model of the camera encoder, see there: a bundle may bring networks that fuse',
    )
    simulated: bool = parameter(
        False, 'the pictures come from the simulator; decides which model an empty name takes'
    )
    calibration_file: str = parameter(
        '', 'camera_info YAML (and transforms) that takes the place of what is published'
    )
    transforms: tuple[str, ...] = parameter(
        (), 'static transforms, each "parent child x y z qx qy qz qw" in m'
    )
    frame_prefix: str = frame_prefix()
    publish_transform: bool = parameter(
        False,
        'publish odom -> base_link on /tf from odometry, where no other node does: RViz needs it, '
        'and an autopilot or robot_localization has it mostly',
    )
    pipeline: PipelineParameters = group(PipelineParameters)


def fusion_pipeline(parameters: FusionParameters) -> PerceptionPipeline:
    """Open the pipeline, and give it the calibration that the parameters name.

    :raises EncodingError: if the model cannot be read
    :raises GeometryError: if a transform or the calibration cannot
    """
    data_association.prepare()
    p = parameters.pipeline
    pipeline = open_pipeline(model_of_encoders(parameters.detector, parameters.simulated, p), p)
    set_up_rig(
        pipeline.rig,
        parameters.transforms,
        parameters.calibration_file,
        parameters.frame_prefix,
    )
    return pipeline
