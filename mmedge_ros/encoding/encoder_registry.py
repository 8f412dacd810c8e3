"""Encoders by modality: those of camera and radar, and what others add from outside.

A program adds a modality with `register_encoder`. An installed package does so with an entry
point of the group ``mmedge_ros.encoders`` whose object is an `EncoderKind`; the nodes of the graph
find it too. In a recording the topic of an added modality is found by its name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detector import DetectorParameters
from mmedge_ros.encoding.opened_levels import HeldLevel
from mmedge_ros.encoding.track_recognition import RecogniserParameters
from mmedge_ros.sensing.radar.filter import RadarLimits

if TYPE_CHECKING:
    from mmedge_ros.encoding.unit_encoder import UnitEncoder

_GROUP = 'mmedge_ros.encoders'


@dataclass(frozen=True)
class EncoderSettings:
    """What an encoder is made from; ``model`` is a bundle or weight file, None without one.

    With ``held`` one level is held at a time, as in flight. ``remembers``: a flight memory wants
    pictures and all labels.
    """

    model: Path | None = None
    detection: DetectorParameters = field(default_factory=DetectorParameters)
    limits: RadarLimits = field(default_factory=RadarLimits)
    recogniser: RecogniserParameters = field(default_factory=RecogniserParameters)
    held: HeldLevel | None = None
    remembers: bool = False


@dataclass(frozen=True)
class EncoderKind:
    """A modality: its message type and relative topic on the graph, and what makes its encoder."""

    modality: str
    message_type: str
    topic: str
    make: Callable[[EncoderSettings], UnitEncoder]


def _camera_encoder(settings: EncoderSettings) -> UnitEncoder:
    from mmedge_ros.encoding.unit_encoder import CameraEncoder

    if settings.model is None:
        raise EncodingError('the encoder of the camera needs a detector; name one')
    return CameraEncoder.from_path(
        settings.model,
        settings.detection,
        settings.recogniser,
        settings.held,
        settings.remembers,
    )


def _radar_encoder(settings: EncoderSettings) -> UnitEncoder:
    from mmedge_ros.encoding.unit_encoder import RadarEncoder

    if settings.model is None:
        return RadarEncoder(settings.limits)
    return RadarEncoder.from_path(
        settings.model, settings.limits, settings.detection.threads, settings.held
    )


# Readers of recordings know the modalities, and open no network: those are imported when made.
_KINDS = {
    CAMERA: EncoderKind(CAMERA, 'sensor_msgs/msg/Image', 'camera/image', _camera_encoder),
    RADAR: EncoderKind(RADAR, 'sensor_msgs/msg/PointCloud2', 'radar/points', _radar_encoder),
}


def register_encoder(kind: EncoderKind) -> None:
    """Add a modality, or replace how one is encoded."""
    _KINDS[kind.modality] = kind


def encoder_kind(modality: str) -> EncoderKind:
    """Return what is registered for a modality.

    :raises EncodingError: if nothing is; the message names the modalities there are
    """
    # Installed packages are looked through only for what is not known: that takes time.
    known = _KINDS if modality in _KINDS else {**_installed(), **_KINDS}
    if modality not in known:
        raise EncodingError(
            f'no encoder is registered for the modality {modality!r}; there are '
            f'{", ".join(sorted(known))}, and a package may add one ({_GROUP})'
        )
    return known[modality]


def added_kinds() -> list[EncoderKind]:
    """List the modalities beside camera and radar."""
    kinds = {**_installed(), **_KINDS}
    return [kinds[modality] for modality in sorted(kinds) if modality not in (CAMERA, RADAR)]


@lru_cache(maxsize=1)
def _installed() -> dict[str, EncoderKind]:
    from importlib.metadata import entry_points

    kinds = {}
    for point in entry_points(group=_GROUP):
        try:
            kind = point.load()
        except Exception as err:  # the package may do anything while it is imported
            raise EncodingError(f'the encoder {point.name!r} of {point.value}: {err}') from err
        if not isinstance(kind, EncoderKind):
            raise EncodingError(f'the encoder {point.name!r}: {point.value} is no EncoderKind')
        kinds[kind.modality] = kind
    return kinds
