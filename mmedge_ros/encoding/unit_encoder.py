"""Turns units into features: one encoder per modality, called once per unit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mmedge_ros.core.data_types import (
    CAMERA,
    RADAR,
    Appearance,
    Detection,
    ModalityConfiguration,
    Unit,
    UnitFeatures,
)
from mmedge_ros.encoding.bricks import BrickStatus
from mmedge_ros.encoding.bundle.model_bundle import (
    can_fuse,
    level_precisions,
    model_levels,
    open_detector,
)
from mmedge_ros.encoding.detector import Detector, DetectorParameters
from mmedge_ros.encoding.object_memory import ObjectMemory
from mmedge_ros.encoding.onnx_detector import kept_classes
from mmedge_ros.encoding.opened_levels import HeldLevel, levels_of
from mmedge_ros.encoding.radar_network import RadarNetwork, open_radar_network
from mmedge_ros.encoding.recent_pictures import KeptPicture, RecentPictures
from mmedge_ros.encoding.track_recogniser import TrackRecogniser, open_track_recogniser
from mmedge_ros.encoding.track_recognition import RecogniserParameters
from mmedge_ros.sensing.camera.image import (
    Picture,
    decode_half_grey,
    decode_image,
    half_grey,
    quick_format,
)
from mmedge_ros.sensing.radar.filter import RadarLimits, filter_returns
from mmedge_ros.sensing.radar.point_cloud import decode_points

OpenLevel = Callable[[str, str], Detector]
OpenRadarLevel = Callable[[str, str], RadarNetwork]

_NO_GRID = np.zeros((0, 0, 0), np.float16)
_NO_EMBEDDING = np.zeros(0, np.float32)


class UnitEncoder(Protocol):
    """Encodes the units of one modality; belongs to one thread.

    ``levels`` are the model levels it distinguishes: none where one model, or none at all,
    serves every level. ``problems`` counts what was wrong inside units that were encoded.
    """

    modality: str
    levels: tuple[str, ...]
    problems: Counter[str]

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        """Encode one unit; its trail is passed through, times are the caller's to add.

        :raises SensingError: if the sensor's message cannot be decoded
        :raises EncodingError: if the level does not exist or the model fails on this unit
        """

    def warm_up(self) -> None:
        """Load and run everything once, so that no unit of the flight pays for it."""


def encoded_unit(
    unit: Unit, configuration: ModalityConfiguration, configuration_id: int, **content: Any
) -> UnitFeatures:
    """Return the features of a unit: what is known of it, and the ``content`` an encoder adds."""
    return UnitFeatures(
        unit.modality,
        unit.sequence,
        unit.stamp_ns,
        unit.available_ns,
        unit.frame_id,
        unit.trail,
        rate=configuration.rate,
        level=configuration.level,
        configuration_id=configuration_id,
        **content,
    )


class CameraEncoder:
    """Detects people in pictures.

    Networks are opened at their first use, or in flight one at a time (`OpenedLevels`,
    `HeldLevels`); in flight grids that nothing fuses, 150 kB each, are not passed on.
    With ``reuse`` in the configuration it encodes some pictures only, and follows what it
    remembers in the others (`ObjectMemory`). ``recogniser`` says more of tracked objects, from
    the pictures encoded last; None where none is wanted.

    :param kept: labels of the detections that are passed on, where the networks detect others as
        well for a flight memory; None passes all on. ``pictures`` are the last ones then
    """

    modality = CAMERA

    def __init__(
        self,
        open_level: OpenLevel,
        levels: tuple[str, ...] = (),
        default: str = '',
        recogniser: TrackRecogniser | None = None,
        held: HeldLevel | None = None,
        kept: tuple[str, ...] | None = None,
    ) -> None:
        self.levels = levels
        self.recogniser = recogniser
        self._kept = kept
        self.pictures: RecentPictures | None = None
        if recogniser is not None:
            self.pictures = recogniser.pictures
        elif kept is not None:
            self.pictures = RecentPictures()
        self.problems: Counter[str] = Counter()
        self._networks = levels_of(open_level, levels, default, CAMERA, Detector.warm_up, held)
        self._device = (held or HeldLevel()).device
        self._sends_grids = (held or HeldLevel()).sends_grids
        self._memory = ObjectMemory()

    @classmethod
    def from_path(
        cls,
        path: Path,
        parameters: DetectorParameters | None = None,
        recogniser: RecogniserParameters | None = None,
        held: HeldLevel | None = None,
        remembers: bool = False,
    ) -> CameraEncoder:
        """Use a bundle folder or a weight file.

        :param remembers: other labels than those of the parameters are detected, too, for a
            flight memory
        :raises EncodingError: if a bundle's manifest cannot be read, or it lacks a recogniser that
            is asked for
        """
        levels, default = model_levels(path)
        chosen = parameters or DetectorParameters()

        def opened(level: str, device: str) -> Detector:
            if not remembers:
                return open_detector(path, chosen, level, device)
            detector = open_detector(path, replace(chosen, labels=()), level, device)
            kept_classes(detector.labels, chosen.labels, str(path))
            return detector

        return cls(
            opened,
            levels,
            default,
            open_track_recogniser(path, recogniser or RecogniserParameters(), chosen.threads),
            held and held._replace(precisions=level_precisions(path), sends_grids=can_fuse(path)),
            chosen.labels if remembers else None,
        )

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        level = self._networks.serving(configuration.level, configuration.device)
        configuration = replace(configuration, level=level)
        due = self._memory.due(unit, configuration)
        if not due:
            followed = self._memory.follow(unit, decode_half_grey(unit.payload))
            if followed is not None:
                size = quick_format(unit.payload)[:2]
                return encoded_unit(
                    unit,
                    configuration,
                    configuration_id,
                    image_size=size,
                    detections=followed,
                    followed=True,
                )
        image = decode_image(unit.payload)
        grey = half_grey(image) if configuration.reuse > 1 else None
        return encoded_unit(
            unit,
            configuration,
            configuration_id,
            image_size=(image.shape[1], image.shape[0]),
            appearance=appearance_of(image),
            **self._detect(unit, configuration, image, grey),
        )

    def _detect(
        self,
        unit: Unit,
        configuration: ModalityConfiguration,
        image: Picture,
        grey: Picture | None,
    ) -> dict[str, Any]:
        """Encode a picture in full; remember it if it has a grey copy to be followed by."""
        # If the network fails, the next picture must not be followed from an older one.
        self._memory.forget()
        output = self._networks.run(
            configuration.level, configuration.device, lambda network: network.detect(image)
        )
        detections, others = _split(output.detections, self._kept)
        if grey is not None:
            detections = self._memory.remember(unit, configuration, grey, detections)
        if self.pictures is not None:
            level = configuration.level
            self.pictures.keep(
                KeptPicture(
                    unit.sequence,
                    image,
                    detections,
                    unit.stamp_ns,
                    level,
                    others,
                    unit.frame_id,
                )
            )
        grid = output.grid if self._sends_grids else _NO_GRID
        return {'detections': detections, 'embedding': output.embedding, 'grid': grid}

    def bricks(self) -> list[BrickStatus]:
        """Return what the networks do, in flight."""
        recogniser = [] if self.recogniser is None else [self.recogniser.brick()]
        return [*self._networks.bricks(), *recogniser]

    def warm_up(self) -> None:
        """Open levels and run them once: every one, or where one is held, the first."""
        for detector in self._networks.warm(self._device):
            detector.warm_up()
        if self.recogniser is not None:
            self.recogniser.warm_up()


def _split(
    detections: tuple[Detection, ...], kept: tuple[str, ...] | None
) -> tuple[tuple[Detection, ...], tuple[Detection, ...]]:
    """Part detections whose labels are kept from the others."""
    if not kept:
        return detections, ()
    others = tuple(one for one in detections if one.label not in kept)
    return tuple(one for one in detections if one.label in kept), others


class RadarEncoder:
    """Decodes radar scans and drops what no target can have sent.

    With a bundle that has radar levels it also makes a feature grid and an embedding of what
    is left, opened as by `CameraEncoder`; without one it needs no model.
    """

    modality = RADAR

    def __init__(
        self,
        limits: RadarLimits,
        open_level: OpenRadarLevel | None = None,
        levels: tuple[str, ...] = (),
        default: str = '',
        held: HeldLevel | None = None,
    ) -> None:
        self.levels = levels
        self.problems: Counter[str] = Counter()
        self._limits = limits
        self._networks = (
            levels_of(open_level, levels, default, RADAR, _opened_warm, held)
            if open_level
            else None
        )
        self._device = (held or HeldLevel()).device

    @classmethod
    def from_path(
        cls, path: Path, limits: RadarLimits, threads: int = 1, held: HeldLevel | None = None
    ) -> RadarEncoder:
        """Use the radar levels of a bundle; of one without any, or a weight file, nothing.

        :raises EncodingError: if the bundle's manifest cannot be read
        """
        levels, default = model_levels(path, RADAR)
        if not levels:
            return cls(limits)
        return cls(
            limits,
            lambda level, device: open_radar_network(path, level, device, threads),
            levels,
            default,
            held and held._replace(precisions=level_precisions(path, RADAR)),
        )

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        returns, dropped = filter_returns(decode_points(unit.payload), self._limits)
        self.problems.update(dropped)
        if len(returns) and np.isnan(returns[:, 3]).all():
            self.problems['no_velocity'] += 1
        level, grid, embedding = configuration.level, _NO_GRID, _NO_EMBEDDING
        if self._networks is not None:
            level = self._networks.serving(level, configuration.device)
            grid, embedding = self._networks.run(
                level, configuration.device, lambda network: network.encode(returns)
            )
        return encoded_unit(
            unit,
            replace(configuration, level=level),
            configuration_id,
            returns=returns,
            embedding=embedding,
            grid=grid,
        )

    def bricks(self) -> list[BrickStatus]:
        """Return what the networks do, in flight."""
        return [] if self._networks is None else self._networks.bricks()

    def warm_up(self) -> None:
        """Open levels as the camera's encoder; each runs on an empty scan when it is opened."""
        if self._networks is not None:
            for _ in self._networks.warm(self._device):
                pass


def _opened_warm(network: RadarNetwork) -> None:
    """Nothing is left to do: it ran on an empty scan when it was opened."""


# So many rows are looked at, spread over the picture; a row of 640 pixels takes 2 us.
_ROWS = 32
_GREEN = 1
_WHITE = 255.0


def appearance_of(picture: Picture) -> Appearance:
    """Return how a picture (H, W, 3) BGR looks; of an empty one nothing is known.

    Green stands for grey. Sharpness is the mean difference of pixels that are two apart in a row,
    divided by the contrast of the rows: blur takes from the former and leaves the latter.
    """
    height, width = picture.shape[:2]
    if not height or width < 3:
        return Appearance()
    step = max(height // _ROWS, 1)
    rows = picture[step // 2 :: step, :, _GREEN].astype(np.float32) / _WHITE
    contrast = float(rows.std())
    change = float(np.abs(rows[:, 2:] - rows[:, :-2]).mean())
    sharpness = change / contrast if contrast > 0.0 else math.nan
    return Appearance(float(rows.mean()), contrast, sharpness)
