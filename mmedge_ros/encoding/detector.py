"""What every object detector offers, whatever network and runtime are behind it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import Detection
from mmedge_ros.core.parameter import parameter

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class DetectorParameters:
    """How detections are chosen from what a network puts out, and with how many threads."""

    score_threshold: float = parameter(
        0.1,
        'detections below this score are dropped; low because the tracker starts tracks from '
        'high scores only, but keeps known tracks alive with low ones (the dark, occlusion)',
        minimum=0.0,
        maximum=1.0,
    )
    # Of two overlapping boxes of one label above this IoU only the better is kept; lower merges
    # people side by side, higher doubles people (networks without NMS of their own).
    iou_threshold: float = 0.45
    maximum_detections: int = 100  # the best so many per picture: bounds the work of association
    labels: tuple[str, ...] = parameter(
        ('person',), 'labels to keep, by the names the network gives them; empty keeps all'
    )
    threads: int = parameter(
        1,
        'threads of one network; one, because camera, radar and fusion share few cores and '
        'two threads per network only help a machine that is otherwise idle',
        minimum=1,
        maximum=64,
    )
    input_width: int = parameter(
        0,
        'input width where the network leaves it open (dynamic axes, .pt weights), a multiple '
        'of 32; 0 takes what the file recommends, else 416',
        'px',
        minimum=0,
        maximum=4096,
    )
    input_height: int = parameter(
        0,
        'input height where the network leaves it open (dynamic axes, .pt weights), a multiple '
        'of 32; 0 takes what the file recommends, else 320 (a 4:3 picture with no waste)',
        'px',
        minimum=0,
        maximum=4096,
    )
    trust_weights: bool = parameter(
        False,
        'export .pt weights, although loading them runs whatever code is in the file; one that '
        'was exported before needs no trust, because its export is used',
    )


@dataclass(frozen=True, slots=True)
class DetectorOutput:
    """What a network makes of one picture.

    Boxes in pixels of the original picture and inside it, best score first. ``embedding`` is
    (E,) float32 and ``grid`` (C, H, W) float16; both are empty for networks without them.
    """

    detections: tuple[Detection, ...]
    embedding: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    grid: NDArray[np.float16] = field(default_factory=lambda: np.zeros((0, 0, 0), np.float16))


class Detector(Protocol):
    """Finds objects in pictures; belongs to one thread."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that ``detect`` may return."""

    @property
    def input_size(self) -> tuple[int, int]:
        """Width and height of the network's input, in pixels."""

    def detect(self, image: Image) -> DetectorOutput:
        """Find objects in a picture of any size.

        :param image: (H, W, 3) uint8, BGR
        :raises EncodingError: if the picture has another shape or type, or the network fails
        """

    def warm_up(self) -> None:
        """Run once on an empty picture, so that the first real one is not slow."""
