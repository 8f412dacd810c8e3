"""A detector that stands in for ground truth: its confident detections are taken to be true."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mmedge_lab.training import TrainingError
from mmedge_lab.training.picture_set import CLASSES
from mmedge_ros.core.data_types import CAMERA, Detection, Unit
from mmedge_ros.encoding.bundle.model_bundle import is_bundle, load_bundle, open_detector
from mmedge_ros.encoding.bundle.weights import sha256_of
from mmedge_ros.encoding.detector import Detector, DetectorParameters
from mmedge_ros.geometry.ego_motion import EgoState
from mmedge_ros.geometry.transforms import Transform
from mmedge_ros.replay.ground_truth import BODY_MIDDLE, PERSON, GroundTruth, TrueObject, TrueScene
from mmedge_ros.replay.recording import Recording
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import decode_image
from mmedge_ros.tracking.decision_fusion import DecisionFusionParameters

# Detections between these scores are neither right nor wrong.
_SURE, _HALF_SURE = 0.4, 0.15
_FRAME = 'teacher'
# A box this near the picture's border (px) may be cut, and then gives no range.
_BORDER = 2.0
_NOWHERE = np.zeros(3)


@dataclass(frozen=True)
class Teacher:
    """Makes pseudo-labels of recordings.

    :param detector: bundle folder or weight file
    :param frames: first and last camera frame (from 0) that are labelled; nothing is learned
        from the others
    """

    detector: Path
    frames: tuple[int, int | None] = (0, None)

    @property
    def name(self) -> str:
        """What it is called in a manifest."""
        first, last = self.frames
        whole = first == 0 and last is None
        frames = '' if whole else f', frames {first} to {"the last" if last is None else last}'
        return f'{self.detector.name}{frames}'

    @cached_property
    def key(self) -> str:
        """The digest of what its labels depend on.

        :raises EncodingError: if the detector cannot be used
        """
        if is_bundle(self.detector):
            bundle = load_bundle(self.detector)
            files = [entry.sha256 for entry in bundle.entries()]
        else:
            files = [sha256_of(self.detector)]
        content = json.dumps([files, self.frames, _SURE, _HALF_SURE])
        return hashlib.sha256(content.encode()).hexdigest()

    def __call__(self, recording: Recording) -> GroundTruth:
        """Label the pictures of a recording.

        Ranges of people follow from the heights of their boxes, where the camera is calibrated.

        :raises TrainingError: if nothing can be labelled
        :raises EncodingError: if the detector cannot be used
        """
        opened = open_detector(self.detector, DetectorParameters(score_threshold=_HALF_SURE))
        scenes = []
        for unit in self.pictures(recording):
            scene = self._scene(unit, opened, recording)
            if scene is not None:
                scenes.append(scene)
        if not any(scene.objects for scene in scenes):
            raise TrainingError(
                f'{recording.bag.path}: {self.detector} finds nothing there that could be '
                'learned; name another --pseudo-labels, or other --frames'
            )
        return GroundTruth(scenes)

    def pictures(self, recording: Recording) -> Iterator[Unit]:
        """Yield the camera units that are labelled."""
        first, last = self.frames
        camera = (unit for unit in recording.units() if unit.modality == CAMERA)
        for number, unit in enumerate(camera):
            if number >= first and (last is None or number <= last):
                yield unit

    def _scene(self, unit: Unit, detector: Detector, recording: Recording) -> TrueScene | None:
        try:
            image = decode_image(unit.payload)
        except SensingError:
            return None
        detections = [d for d in detector.detect(image).detections if d.label in CLASSES]
        size = image.shape[1], image.shape[0]
        objects = _objects(detections, size, recording)
        still = EgoState(unit.stamp_ns, Transform.identity(), _NOWHERE, _NOWHERE)
        return TrueScene(unit.stamp_ns, _FRAME, objects, ego=still)


def _objects(
    detections: Sequence[Detection], size: tuple[int, int], recording: Recording
) -> tuple[TrueObject, ...]:
    height = DecisionFusionParameters().person_height
    objects = []
    for number, detection in enumerate(detections):
        box = detection.box
        whole = box.y0 > _BORDER and box.y1 < size[1] - _BORDER
        away = np.nan
        if recording.camera is not None and whole and detection.label == PERSON:
            away = float(recording.camera.k[1, 1]) * height / box.height
        # The range of an object is that of the middle of its body from where the drone is.
        position = np.array((away, 0.0, 0.0)) - BODY_MIDDLE
        visibility = 1.0 if detection.score >= _SURE else 0.0
        objects.append(TrueObject(number, detection.label, box, visibility, position, _NOWHERE))
    return tuple(objects)
