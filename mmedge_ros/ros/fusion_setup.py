"""Parameters of the fusion node, and the pipeline that they describe."""

from __future__ import annotations

from dataclasses import dataclass

from mmedge_ros.geometry.calibration import read_calibration
from mmedge_ros.geometry.transforms import parse_static_transform
from mmedge_ros.parameter import group, parameter
from mmedge_ros.pipeline.fusion_strategy import model_of_encoders, open_pipeline
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline, PipelineParameters


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
    pipeline: PipelineParameters = group(PipelineParameters)


def fusion_pipeline(parameters: FusionParameters) -> PerceptionPipeline:
    """Open the pipeline, and give it the calibration that the parameters name.

    :raises EncodingError: if the model cannot be read
    :raises GeometryError: if a transform or the calibration cannot
    """
    p = parameters.pipeline
    pipeline = open_pipeline(model_of_encoders(parameters.detector, parameters.simulated, p), p)
    pipeline.rig.add_transforms([parse_static_transform(t) for t in parameters.transforms])
    if parameters.calibration_file:
        calibration = read_calibration(parameters.calibration_file)
        pipeline.rig.add_transforms(calibration.transforms)
        if calibration.camera is not None:
            pipeline.rig.set_camera(calibration.camera)
    return pipeline
