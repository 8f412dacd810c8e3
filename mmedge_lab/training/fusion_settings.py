"""What a fusion training is: everything that decides its result."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from mmedge_lab.training.epoch_training import FLOAT32
from mmedge_ros.core.data_types import NS_PER_S

NARROW, WIDE = 'narrow', 'wide'
# The set that judges a training.
VALIDATION = 'validation'
LEVELS = ('small', 'medium', 'large')
# Parts of the temporal aggregation, by the names of the switches of `Aggregator`.
PARTS = ('shift', 'differences', 'aggregation')


class CameraLevel(NamedTuple):
    """A level of the camera: which of the two detectors, and width and height of its input."""

    detector: str
    size: tuple[int, int]


CAMERA_LEVELS = {
    'small': CameraLevel(NARROW, (416, 320)),
    'medium': CameraLevel(NARROW, (640, 480)),
    'large': CameraLevel(WIDE, (640, 480)),
}


@dataclass(frozen=True)
class WindowRandomness:
    """How windows differ from those of an undisturbed flight: shares of the windows, 0 to 1.

    ``mixed`` change their level from unit to unit or once. From ``cut`` the last units are
    missing, as in a decision before the window's end; ``lossy`` lose single units anywhere.
    ``no_camera`` and ``no_radar`` have nothing of a modality.
    """

    mixed: float = 0.25
    cut: float = 0.25
    lossy: float = 0.25
    no_camera: float = 0.06
    no_radar: float = 0.12


@dataclass(frozen=True)
class FusionSettings:
    """Two trainings with equal settings on one machine give the same network.

    ``window`` and ``stride`` (s) are those of the flight; an epoch takes one of ``thinning``
    windows, drawn anew for each; the radar's networks learn from every
    ``radar_step``-th scan. Rates (Hz, 0 = native) are drawn per batch.
    For comparison, ``without`` leaves out parts of the aggregation, of `PARTS`.
    """

    epochs: int = 8
    batch: int = 8
    seed: int = 0
    learning_rate: float = 1.5e-3
    weight_decay: float = 1e-3
    threads: int = 2
    precision: str = FLOAT32
    window: float = 0.5
    stride: float = 0.1
    thinning: int = 5
    camera_rates: tuple[float, ...] = (0.0, 0.0, 20.0, 10.0)
    radar_rates: tuple[float, ...] = (0.0, 0.0, 10.0, 5.0)
    projection_pictures: int = 250
    radar_epochs: int = 4
    radar_step: int = 6
    embedding_steps: int = 400
    judged_windows: int = 300
    randomness: WindowRandomness = WindowRandomness()
    without: tuple[str, ...] = ()

    @property
    def stride_ns(self) -> int:
        """Distance of window ends, ns."""
        return round(self.stride * NS_PER_S)

    def plain(self) -> dict[str, Any]:
        """Return plain values, as a checkpoint and a manifest hold them."""
        values = asdict(self)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}
