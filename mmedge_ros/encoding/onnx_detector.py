"""Detects objects with an ONNX network; the output format is recognised from the file."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import Box, Detection
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.detection_heads import best_boxes, class_names, find_head
from mmedge_ros.encoding.detector import DetectorOutput, DetectorParameters, Image
from mmedge_ros.encoding.feature_grid import CANVAS
from mmedge_ros.encoding.letterbox import PADDING, Canvas, Letterbox, LetterboxPlacement
from mmedge_ros.encoding.onnx_session import Port, only_input
from mmedge_ros.encoding.tapped_network import (
    GridEmbedding,
    TappedNetwork,
    TapState,
    as_embedding,
    as_grid,
)

DEFAULT_INPUT_SIZE = (416, 320)
_SMALLEST_STRIDE_MULTIPLE = 32


class PictureInWork(NamedTuple):
    """A picture that is on its way through a network, and where it lies in the input."""

    state: TapState
    placement: LetterboxPlacement


class OnnxDetector:
    """A detection network in ONNX Runtime, of one graph or of stages.

    YOLOX and ultralytics' heads are understood, with or without end-to-end boxes (see
    detection_heads). Outputs that the graph names ``embedding`` and ``grid`` are passed on.
    ``detect`` is ``begin``, ``advance`` through all stages, and ``finish``.

    :param path: the file, or the files of the stages in their order
    :param grid: shape that the grid must have, of the form that feature_grid describes;
        pictures are then fitted onto its canvas first
    :param embedding: network that makes the embedding of the grid
    :param labels: what the network's class names are called instead; classes of one label are one
    :raises EncodingError: if a file is no such network, or the device is not there
    """

    def __init__(
        self,
        path: Path | Sequence[Path],
        parameters: DetectorParameters | None = None,
        device: str = 'cpu',
        grid: tuple[int, int, int] | None = None,
        embedding: Path | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        stages = [path] if isinstance(path, Path) else list(path)
        self._parameters = parameters or DetectorParameters()
        threads = self._parameters.threads
        self._network = TappedNetwork(stages, threads, device)
        self._place = self._network.place
        metadata = self._network.metadata()
        port = only_input(self._network.sessions[0], self._place)
        self._input_size = _input_size(port, metadata, self._parameters)
        self._answer = _detection_output(self._network, self._place)
        self._grid = grid
        self._embedding = GridEmbedding(embedding, threads, device) if embedding else None
        # A run on black shows the shapes even where the graph leaves its axes open.
        black = np.zeros((1, 3, *self._input_size[::-1]), port.dtype)
        outputs = self._network.run(black)
        answer = np.asarray(outputs[self._answer], np.float32)
        self._head = find_head(answer, self._input_size, metadata, self._place)
        own = class_names(metadata, self._head.classes, self._place)
        self._names = tuple((labels or {}).get(name, name) for name in own)
        # Suppression tells objects of several classes apart, unless they go by one label.
        self._classes = np.array([self._names.index(name) for name in self._names])
        self._kept = kept_classes(self._names, self._parameters.labels, self._place)
        canvas = Canvas.in_input(CANVAS, self._input_size) if grid else None
        self._letterbox = Letterbox(self._input_size, self._head.style, port.dtype, canvas)
        self._features(outputs)  # refuses a grid of a wrong shape here, not in flight

    @property
    def labels(self) -> tuple[str, ...]:
        kept = (name for name, kept in zip(self._names, self._kept, strict=True) if kept)
        return tuple(dict.fromkeys(kept))

    @property
    def input_size(self) -> tuple[int, int]:
        return self._input_size

    @property
    def blocks(self) -> int:
        return self._network.blocks

    @property
    def tapped(self) -> TappedNetwork:
        """The network itself."""
        return self._network

    def warm_up(self) -> None:
        width, height = self._input_size
        self.detect(np.full((height, width, 3), PADDING, np.uint8))

    def detect(self, image: Image) -> DetectorOutput:
        """See Detector. Measured with YOLOX-nano at 416 x 416: all but inference 0.4 ms."""
        return self.finish(self.begin(image))

    def begin(self, image: Image) -> PictureInWork:
        """Bring a picture through the first stage; errors as for ``detect``."""
        placement = self._letterbox.fill(image)
        return PictureInWork(self._network.start(self._letterbox.blob), placement)

    def advance(self, work: PictureInWork) -> PictureInWork:
        """Bring a picture through one stage more; errors as for ``TappedNetwork.advance``."""
        return work._replace(state=self._network.advance(work.state))

    def finish(self, work: PictureInWork) -> DetectorOutput:
        """Bring a picture through what is left, and read the detections.

        :raises EncodingError: if the network fails
        """
        outputs = self._network.finish(work.state)
        embedding, grid = self._features(outputs)
        answer = np.asarray(outputs[self._answer], np.float32)
        return DetectorOutput(self._detections(answer[0], work.placement), embedding, grid)

    def _detections(
        self, output: NDArray[np.float32], placement: LetterboxPlacement
    ) -> tuple[Detection, ...]:
        parameters = self._parameters
        with np.errstate(invalid='ignore', over='ignore'):  # hostile values are dropped or cut
            candidates = self._head.candidates(output, parameters.score_threshold, self._kept)
            candidates = candidates._replace(classes=self._classes[candidates.classes])
            if self._head.overlapping:
                order = best_boxes(candidates, parameters.iou_threshold)
            else:
                order = np.argsort(-candidates.scores, kind='stable')
            boxes = placement.to_picture(candidates.boxes[order]).tolist()
        scores, classes = candidates.scores[order].tolist(), candidates.classes[order]
        best = zip(boxes, scores, classes, strict=True)
        detections = (
            Detection(Box(*box), score, self._names[label])
            for box, score, label in best
            if box[2] > box[0] and box[3] > box[1]  # the rest lies outside the picture
        )
        return tuple(detections)[: parameters.maximum_detections]

    def _features(
        self, outputs: Mapping[str, NDArray[Any]]
    ) -> tuple[NDArray[np.float32], NDArray[np.float16]]:
        """Return the embedding (E,) and the grid (C, H, W), empty where the graph has none."""
        embedding = np.zeros(0, np.float32)
        grid = np.zeros((0, 0, 0), np.float16)
        if 'grid' in outputs:
            grid = as_grid(outputs['grid'], self._place)
        if self._grid and grid.shape != self._grid:
            raise EncodingError(
                f'{self._place} puts out a grid of {list(grid.shape)}, its bundle promises '
                f'{list(self._grid)}; use weights and manifest of one and the same bundle'
            )
        if self._embedding is not None and grid.size:
            embedding = self._embedding.of(grid)
        elif 'embedding' in outputs:
            embedding = as_embedding(outputs['embedding'], self._place)
        return embedding, grid


def _detection_output(network: TappedNetwork, place: str) -> str:
    """Return the name of the detections; they and the features are all that is worked out."""
    features = [name for name in network.outputs if name in ('embedding', 'grid')]
    others = [name for name in network.outputs if name not in features]
    if not others:
        raise EncodingError(f'{place} puts out only {features}; it has no detections')
    answer = 'detections' if 'detections' in others else others[0]
    network.keep([*features, answer])
    return answer


def kept_classes(names: tuple[str, ...], labels: tuple[str, ...], place: str) -> NDArray[np.bool_]:
    """Say which classes (C,) are kept; no labels keep all.

    :raises EncodingError: for a label that none of them has
    """
    for label in labels:
        if label not in names:
            near = difflib.get_close_matches(label, names, n=1, cutoff=0.0)
            raise EncodingError(
                f'{place} knows no label {label!r}; the nearest of its {len(names)} is '
                f'{near[0]!r}. Name labels it knows, or none to keep all'
            )
    return np.array([not labels or name in labels for name in names])


def _input_size(
    port: Port, metadata: Mapping[str, str], parameters: DetectorParameters
) -> tuple[int, int]:
    """Return width and height: the graph's, or where it leaves them open the best guess."""
    recommended = _recommended_size(metadata)
    width = port.shape[3] or parameters.input_width or recommended[0]
    height = port.shape[2] or parameters.input_height or recommended[1]
    is_free = port.shape[2] is None or port.shape[3] is None
    if is_free and (width % _SMALLEST_STRIDE_MULTIPLE or height % _SMALLEST_STRIDE_MULTIPLE):
        raise EncodingError(
            f'an input of {width} x {height} px does not suit a detector; '
            f'input_width and input_height must be multiples of {_SMALLEST_STRIDE_MULTIPLE}'
        )
    return width, height


def _recommended_size(metadata: Mapping[str, str]) -> tuple[int, int]:
    """Read ultralytics' ``imgsz``: one side, or [height, width]."""
    try:
        size = ast.literal_eval(metadata.get('imgsz', 'None'))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return DEFAULT_INPUT_SIZE
    height, width = size if isinstance(size, list | tuple) and len(size) == 2 else (size, size)
    if all(isinstance(side, int) and 32 <= side <= 4096 for side in (width, height)):
        return width, height
    return DEFAULT_INPUT_SIZE
