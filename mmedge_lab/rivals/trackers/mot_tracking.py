"""Our tracker on the detections of a MOTChallenge sequence, without radar and without pictures.

Fusion and tracker are those of the pipeline with its parameters, for a detector that nobody
calibrated. The camera is assumed neither to move nor to distort, with a focal length of the width
of its picture (53 degrees of view).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.mot_text import NO_CLASS, MotBoxes, scores
from mmedge_ros.core.data_types import CAMERA, NS_PER_S, Box, Detection, Measurement, UnitFeatures
from mmedge_ros.geometry.ground_plane import GroundPlane
from mmedge_ros.geometry.projection import CameraModel
from mmedge_ros.geometry.sensor_poses import BASE_FRAME, OPTICAL_TO_BODY, SensorGeometry
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.unit_tracker import UnitTracker
from mmedge_ros.tracking.decision_fusion import fuse_detections
from mmedge_ros.tracking.pairing import PairedUnits
from mmedge_ros.tracking.score_calibration import ScoreCalibration
from mmedge_ros.tracking.tracker import Tracker

DEFAULT_FPS = 25.0
SLOWEST_FPS, FASTEST_FPS = 0.1, 1000.0
LARGEST_SIDE = 65_536
_LABEL = 'person'


@dataclass(frozen=True)
class MotCamera:
    """What the text leaves open: picture size in px (0 = from the boxes) and pictures per second.

    :raises EvaluationError: for a size or rate no camera has
    """

    width: int = 0
    height: int = 0
    fps: float = DEFAULT_FPS

    def __post_init__(self) -> None:
        for name, side in (('width', self.width), ('height', self.height)):
            if not 0 <= side <= LARGEST_SIDE:
                raise EvaluationError(
                    f'{name} is {side} px; give 1 to {LARGEST_SIDE}, or 0 to take the extent of '
                    'the boxes'
                )
        if not SLOWEST_FPS <= self.fps <= FASTEST_FPS:
            raise EvaluationError(
                f'{self.fps:g} pictures per second; give {SLOWEST_FPS:g} to {FASTEST_FPS:g}'
            )

    def fitted(self, boxes: MotBoxes) -> MotCamera:
        """Return it with the sizes left open taken from the extent of the boxes.

        :raises EvaluationError: if the boxes reach further than any picture
        """
        reach = boxes.boxes[:, 2:].max(axis=0, initial=1.0)
        sides = []
        for name, given, far in zip(
            ('width', 'height'), (self.width, self.height), reach.tolist(), strict=True
        ):
            if not given and far > LARGEST_SIDE:
                raise EvaluationError(
                    f'the boxes reach to {far:.0f} px; give the {name} of the picture'
                )
            sides.append(given or math.ceil(far))
        return MotCamera(sides[0], sides[1], self.fps)


def track_detections(
    detections: MotBoxes, camera: MotCamera, parameters: PipelineParameters | None = None
) -> MotBoxes:
    """Track the boxes of detections and return one box per frame and confirmed track.

    Causal: the boxes of a frame are reported after its own update. Only the scale of the
    confidences and a picture size left open are taken from the file as a whole.

    :raises EvaluationError: if the boxes reach further than any picture
    """
    p = parameters or PipelineParameters()
    geometry = _geometry(camera.fitted(detections))

    def measure(units: PairedUnits, _ground: GroundPlane) -> list[Measurement]:
        return fuse_detections(units.camera, units.scans, geometry, p.fusion)

    tracker = UnitTracker(Tracker(p.tracker), measure, p.pairing, p.lag)
    calibration = ScoreCalibration()
    rows: list[list[float]] = []
    for raw in _units(detections, camera.fps, tracker):
        unit = replace(raw, detections=calibration.take(raw.stamp_ns, raw.detections))
        tracker.update([unit])
        rows += [
            [unit.sequence, track.id, *track.box, track.score, NO_CLASS]
            for track in tracker.report(unit.stamp_ns, unit.stamp_ns - 1)
            if track.box is not None
        ]
    return MotBoxes.from_rows(rows)


def _geometry(camera: MotCamera) -> SensorGeometry:
    model = CameraModel.nominal(camera.width, camera.height, float(camera.width))
    pose = Transform(OPTICAL_TO_BODY, np.zeros(3))
    return SensorGeometry(BASE_FRAME, model, pose, Transform.identity())


def _units(detections: MotBoxes, fps: float, tracker: UnitTracker) -> Iterator[UnitFeatures]:
    """Yield a camera unit per frame; frames without boxes only while there is a track.

    So a gap of a billion frames costs no more than the time until the last track is dropped.
    """
    confidences, _ = scores(detections.confidences)
    expected: int | None = None
    for frame, place in detections.by_frame().items():
        while expected is not None and expected < frame and tracker.state.tracks:
            yield _unit(expected, fps, ())
            expected += 1
        shown = zip(detections.boxes[place].tolist(), confidences[place].tolist(), strict=True)
        seen = tuple(Detection(Box(*box), score, _LABEL) for box, score in shown)
        yield _unit(frame, fps, seen)
        expected = frame + 1


def _unit(frame: int, fps: float, detections: tuple[Detection, ...]) -> UnitFeatures:
    # Frame 0 is a moment after the origin of time, at which a tracker has seen everything.
    stamp_ns = round((frame + 1) / fps * NS_PER_S)
    return UnitFeatures(
        CAMERA, frame, stamp_ns, stamp_ns, 'camera_optical_frame', (), fps, detections=detections
    )
