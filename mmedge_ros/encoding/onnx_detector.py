"""Detects objects with an ONNX network; the output format is found from the file."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.data_types import Box, Detection
from mmedge_ros.encoding.class_names import class_names
from mmedge_ros.encoding.detection_heads import find_head
from mmedge_ros.encoding.detector import (
    DetectorOutput,
    DetectorParameters,
    EncodingError,
    Image,
)
from mmedge_ros.encoding.letterbox import PADDING, Letterbox, Placement
from mmedge_ros.encoding.non_maximum_suppression import best_boxes
from mmedge_ros.encoding.onnx_session import Port, only_input, open_session, runtime_errors

DEFAULT_INPUT_SIZE = (416, 320)
_SMALLEST_STRIDE_MULTIPLE = 32
_LARGEST_FLOAT16 = 65504.0


class OnnxDetector:
    """A detection network in ONNX Runtime.

    YOLOX and ultralytics' heads are understood, with or without end-to-end boxes (see
    detection_heads). Outputs that the graph names ``embedding`` and ``grid`` are passed on.

    :raises EncodingError: if the file is no such network, or the device is not there
    """

    def __init__(
        self, path: Path, parameters: DetectorParameters | None = None, device: str = 'cpu'
    ) -> None:
        self._place = str(path)
        self._parameters = parameters or DetectorParameters()
        self._session = open_session(path, self._parameters.threads, device)
        metadata = self._metadata()
        port = only_input(self._session, self._place)
        self._input = port.name
        self._input_size = _input_size(port, metadata, self._parameters)
        self._outputs = _wanted_outputs(self._session, self._place)
        # A run on black shows the shapes even where the graph leaves its axes open.
        outputs = self._run(np.zeros((1, 3, *self._input_size[::-1]), port.dtype))
        self._head = find_head(outputs[0], self._input_size, metadata, self._place)
        self._names = class_names(metadata, self._head.classes, self._place)
        self._kept = _kept_classes(self._names, self._parameters.labels, self._place)
        self._letterbox = Letterbox(self._input_size, self._head.style, port.dtype)
        self._features(outputs)  # refuses a grid of a wrong shape here, not in flight

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(n for n, kept in zip(self._names, self._kept, strict=True) if kept)

    @property
    def input_size(self) -> tuple[int, int]:
        return self._input_size

    def warm_up(self) -> None:
        width, height = self._input_size
        self.detect(np.full((height, width, 3), PADDING, np.uint8))

    def detect(self, image: Image) -> DetectorOutput:
        """See Detector. Measured with YOLOX-nano at 416 x 416: all but inference 0.4 ms."""
        placement = self._letterbox.fill(image)
        outputs = self._run(self._letterbox.blob)
        embedding, grid = self._features(outputs)
        return DetectorOutput(self._detections(outputs[0][0], placement), embedding, grid)

    def _metadata(self) -> dict[str, str]:
        with runtime_errors(f'{self._place} has unreadable metadata'):
            return dict(self._session.get_modelmeta().custom_metadata_map)

    def _run(self, blob: NDArray[np.floating]) -> list[NDArray[Any]]:
        with runtime_errors(f'{self._place} failed on a picture'):
            outputs = self._session.run(self._outputs, {self._input: blob})
        return [np.asarray(outputs[0], np.float32), *outputs[1:]]

    def _detections(
        self, output: NDArray[np.float32], placement: Placement
    ) -> tuple[Detection, ...]:
        parameters = self._parameters
        with np.errstate(invalid='ignore', over='ignore'):  # hostile values are dropped or cut
            found = self._head.candidates(output, parameters.score_threshold, self._kept)
            if self._head.overlapping:
                order = best_boxes(found, parameters.iou_threshold)
            else:
                order = np.argsort(-found.scores, kind='stable')
            boxes = placement.to_picture(found.boxes[order]).tolist()
        best = zip(boxes, found.scores[order].tolist(), found.classes[order], strict=True)
        detections = (
            Detection(Box(*box), score, self._names[label])
            for box, score, label in best
            if box[2] > box[0] and box[3] > box[1]  # the rest lies outside the picture
        )
        return tuple(detections)[: parameters.maximum_detections]

    def _features(
        self, outputs: list[NDArray[Any]]
    ) -> tuple[NDArray[np.float32], NDArray[np.float16]]:
        """Return the embedding (E,) and the grid (C, H, W), empty where the graph has none."""
        named = dict(zip(self._outputs[1:], outputs[1:], strict=True))
        embedding = np.zeros(0, np.float32)
        grid = np.zeros((0, 0, 0), np.float16)
        if 'embedding' in named:
            embedding = np.asarray(named['embedding'], np.float32).reshape(-1)
        if 'grid' in named:
            raw = named['grid']
            if raw.ndim != 4 or raw.shape[0] != 1:
                raise EncodingError(
                    f'{self._place} puts out a grid of {list(raw.shape)}; '
                    'it must be [1, channels, rows, columns]'
                )
            self._require_finite('grid', raw)
            grid = np.clip(raw[0], -_LARGEST_FLOAT16, _LARGEST_FLOAT16).astype(np.float16)
        self._require_finite('embedding', embedding)
        return embedding, grid

    def _require_finite(self, name: str, values: NDArray[Any]) -> None:
        # Aggregation over time would carry one such value through all that follows.
        if not np.isfinite(values).all():
            raise EncodingError(
                f'{self._place} put out a {name} that is not finite; the picture is dropped. '
                'If it happens often, export the network in float32'
            )


def _wanted_outputs(session: Any, place: str) -> list[str]:
    """Return the names of the detections, then of the features the graph has."""
    names = [port.name for port in session.get_outputs()]
    features = [name for name in names if name in ('embedding', 'grid')]
    others = [name for name in names if name not in features]
    if not others:
        raise EncodingError(f'{place} puts out only {names}; it has no detections')
    return ['detections' if 'detections' in others else others[0], *features]


def _kept_classes(
    names: tuple[str, ...], labels: tuple[str, ...], place: str
) -> NDArray[np.bool_]:
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
