"""Turns units into features: one encoder per modality, called once per unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from mmedge_ros.data_types import CAMERA, RADAR, ModalityConfiguration, Unit, UnitFeatures
from mmedge_ros.encoding.detector import Detector, DetectorParameters, EncodingError
from mmedge_ros.encoding.model_bundle import model_levels, open_detector
from mmedge_ros.sensing.image import decode_image
from mmedge_ros.sensing.point_cloud import decode_points
from mmedge_ros.sensing.radar_filter import RadarLimits, filter_returns

OpenLevel = Callable[[str, str], Detector]


class UnitEncoder(Protocol):
    """Encodes the units of one modality; belongs to one thread.

    ``levels`` are the model levels it can tell apart: none where one model, or none at all,
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


class CameraEncoder:
    """Detects people in pictures; the network of each level is opened when first asked for.

    :param open_level: opens the detector for a level and a device
    :param levels: what ``open_level`` knows; () if it serves every name
    :param default: the level that stands for ''
    """

    modality = CAMERA

    def __init__(
        self, open_level: OpenLevel, levels: tuple[str, ...] = (), default: str = ''
    ) -> None:
        self.levels = levels
        self.problems: Counter[str] = Counter()
        self._open_level = open_level
        self._default = default
        self._detectors: dict[tuple[str, str], Detector | EncodingError] = {}

    @classmethod
    def from_path(cls, path: Path, parameters: DetectorParameters | None = None) -> CameraEncoder:
        """Use a bundle folder or a weight file.

        :raises EncodingError: if a bundle's manifest cannot be read
        """
        levels, default = model_levels(path)
        return cls(
            lambda level, device: open_detector(path, parameters, level, device), levels, default
        )

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        level = configuration.level or self._default
        detector = self._detector(level, configuration.device)
        image = decode_image(unit.payload)
        found = detector.detect(image)
        return UnitFeatures(
            modality=unit.modality,
            sequence=unit.sequence,
            stamp_ns=unit.stamp_ns,
            available_ns=unit.available_ns,
            frame_id=unit.frame_id,
            trail=unit.trail,
            rate=configuration.rate,
            level=level,
            configuration_id=configuration_id,
            detections=found.detections,
            embedding=found.embedding,
            grid=found.grid,
            image_size=(image.shape[1], image.shape[0]),
        )

    def warm_up(self) -> None:
        """Open every level on the CPU and run it once: a change of level then costs nothing."""
        device = ModalityConfiguration(self.modality).device
        for level in self.levels or (self._default,):
            self._detector(level, device).warm_up()

    def _detector(self, level: str, device: str) -> Detector:
        # Without levels of its own one network serves all names.
        key = (level if self.levels else '', device)
        if key not in self._detectors:
            try:
                self._detectors[key] = self._open_level(*key)
            except EncodingError as err:
                # Kept: hashing and parsing a broken file again would slow down every unit.
                self._detectors[key] = err
        detector = self._detectors[key]
        if isinstance(detector, EncodingError):
            raise EncodingError(str(detector))
        return detector


class RadarEncoder:
    """Decodes radar scans and drops what no target can have sent; needs no model."""

    modality = RADAR

    def __init__(self, limits: RadarLimits) -> None:
        self.levels: tuple[str, ...] = ()
        self.problems: Counter[str] = Counter()
        self._limits = limits

    def encode(
        self, unit: Unit, configuration: ModalityConfiguration, configuration_id: int
    ) -> UnitFeatures:
        returns, dropped = filter_returns(decode_points(unit.payload), self._limits)
        self.problems.update(dropped)
        if len(returns) and np.isnan(returns[:, 3]).all():
            self.problems['no_velocity'] += 1
        return UnitFeatures(
            modality=unit.modality,
            sequence=unit.sequence,
            stamp_ns=unit.stamp_ns,
            available_ns=unit.available_ns,
            frame_id=unit.frame_id,
            trail=unit.trail,
            rate=configuration.rate,
            level=configuration.level,
            configuration_id=configuration_id,
            returns=returns,
        )

    def warm_up(self) -> None:
        """There is nothing to load."""
