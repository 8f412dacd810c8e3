"""A camera level in torch: a detection network whose last stage also puts out a feature grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from mmedge_lab.training import TrainingError
from mmedge_lab.training.grid_projection import GridProjection, carry, resampling
from mmedge_ros.encoding.feature_grid import (
    CANVAS,
    COLUMNS,
    GRID_CLASSES,
    LARGEST_LOGIT,
    LEARNED_CHANNELS,
    NOTHING,
    ROWS,
    STRIDES,
    VALUES,
    scale_shape,
)

# Of YOLO26: the last layers at stride 4, 8 and 16, and of the backbone; then neck and head.
_BOUNDS = (0, 3, 5, 7, 11, 23)
_LAYERS = 24
TAPS = ('p2', 'p3', 'p4', 'p5')
_CUTS = {bound - 1: name for bound, name in zip(_BOUNDS[1:], TAPS, strict=False)}


class CameraLevelNetwork(nn.Module):  # type: ignore[misc]
    """Pictures to grid and detections, in ``stages`` that can be run one after another.

    Stages take the tensors named in ``reads`` and put out those named in ``writes``. The last
    puts out grid (B, 64, 30, 40) and detections (B, 8, cells).

    :param network: of ``new_network``, fused; shared, not copied
    :param projection: to the learned channels; None for zeros
    :param input_size: width and height
    :raises TrainingError: if the network is of another design or has other classes
    """

    def __init__(
        self, network: Any, projection: GridProjection | None, input_size: tuple[int, int]
    ) -> None:
        super().__init__()
        _require_design(network, input_size)
        channels = feature_channels(network)
        projection = projection or GridProjection.empty(channels)
        if projection.weight.shape != (LEARNED_CHANNELS, channels):
            raise TrainingError(
                f'a projection of shape {projection.weight.shape} does not suit a network with '
                f'{channels} channels of features; fit it to this network'
            )
        last = _LastStage(network, projection, input_size)
        stages = [_Stage(network, number) for number in range(len(TAPS))]
        self.stages = nn.ModuleList([*stages, last])
        self.eval()

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor]:
        tensors = {'images': pictures}
        for stage in self.stages:
            made = stage(*(tensors[name] for name in stage.reads))
            made = made if isinstance(made, tuple) else (made,)
            tensors.update(zip(stage.writes, made, strict=True))
        return tensors['grid'], tensors['detections']


class _Stage(nn.Module):  # type: ignore[misc]
    """Layers of the network from one bound to the next."""

    def __init__(self, network: Any, number: int) -> None:
        super().__init__()
        self._first = _BOUNDS[number]
        self.layers = nn.ModuleList(network.model[self._first : _BOUNDS[number + 1]])
        sources = {source for layer in self.layers for source in _sources(layer)}
        # -1 is the layer before: for the first one, that of the stage before.
        used = {self._first - 1 if source == -1 else source for source in sources}
        self._reads = [cut for cut in _CUTS if cut in used and cut < self._first]
        self.reads = tuple(_CUTS[cut] for cut in self._reads) or ('images',)
        self.writes: tuple[str, ...] = TAPS[number : number + 1]

    def forward(self, *tensors: Tensor) -> Any:
        return self.walk(tensors)[_BOUNDS[_BOUNDS.index(self._first) + 1] - 1]

    def walk(self, tensors: Sequence[Tensor]) -> dict[int, Tensor]:
        """Return what was read and what each layer puts out, by number of the layer."""
        made = dict(zip(self._reads, tensors, strict=False))
        value = made[self._first - 1] if self._reads else tensors[0]
        for layer in self.layers:
            parts = [value if source == -1 else made[source] for source in _sources(layer)]
            value = layer(parts[0] if isinstance(layer.f, int) else parts)
            made[layer.i] = value
        return made


class _LastStage(_Stage):
    """Neck, head and grid."""

    def __init__(
        self, network: Any, projection: GridProjection, input_size: tuple[int, int]
    ) -> None:
        super().__init__(network, len(TAPS))
        self.writes = ('grid', 'detections')
        self.head = network.model[-1]
        self.grid = _Grid(projection, input_size)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        made = self.walk(tensors)
        detections, raw = self.head([made[source] for source in self.head.f])
        return self.grid(raw['scores'], raw['boxes'], raw['feats']), detections


class _Grid(nn.Module):  # type: ignore[misc]
    """Output of the head and the features it reads, as a grid."""

    def __init__(self, projection: GridProjection, input_size: tuple[int, int]) -> None:
        super().__init__()
        self._is_canvas = input_size == CANVAS
        self._counts = [(input_size[0] // s) * (input_size[1] // s) for s in STRIDES]
        self._scale = 1.0
        for stride in STRIDES:
            how = carry(input_size, stride)
            self._scale = how.scale
            self.register_buffer(f'source{stride}', torch.from_numpy(how.source))
            known = torch.from_numpy(how.known.astype(np.float32))
            self.register_buffer(f'known{stride}', known)
            self.register_buffer(f'offset{stride}', torch.from_numpy(how.offset))
        for name, matrix in zip(('down', 'across'), resampling(input_size), strict=True):
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(matrix)))
        self.projection = nn.Conv2d(projection.weight.shape[1], LEARNED_CHANNELS, 1)
        with torch.no_grad():
            self.projection.weight.copy_(torch.from_numpy(projection.weight)[..., None, None])
            self.projection.bias.copy_(torch.from_numpy(projection.bias))

    def forward(self, scores: Tensor, boxes: Tensor, features: Sequence[Tensor]) -> Tensor:
        logits = scores.clamp(-LARGEST_LOGIT, LARGEST_LOGIT).split(self._counts, dim=-1)
        distances = boxes.split(self._counts, dim=-1)
        fine, middle, coarse = (
            self._carried(*parts) for parts in zip(STRIDES, logits, distances, strict=True)
        )
        fine = fine.reshape(-1, VALUES, ROWS, 2, COLUMNS, 2).permute(0, 3, 5, 1, 2, 4)
        fine = fine.reshape(-1, 4 * VALUES, ROWS, COLUMNS)
        coarse = functional.interpolate(coarse, scale_factor=2.0, mode='nearest')
        learned = self.projection(grid_features(features))
        if not self._is_canvas:
            learned = self.down @ learned @ self.across
        return torch.cat((fine, middle, coarse, learned), dim=1)

    def _carried(self, stride: int, logits: Tensor, distances: Tensor) -> Tensor:
        if not self._is_canvas:
            source = getattr(self, f'source{stride}')
            known = getattr(self, f'known{stride}')
            logits = (logits.index_select(2, source) - NOTHING) * known + NOTHING
            distances = distances.index_select(2, source) * (known * self._scale)
            distances = distances + getattr(self, f'offset{stride}')
        values = torch.cat((logits, distances), dim=1)
        return values.reshape(-1, VALUES, *scale_shape(stride))


def grid_features(features: Sequence[Tensor]) -> Tensor:
    """Put the features of the strides 8, 16 and 32 (B, C, h, w) together at stride 16."""
    fine, middle, coarse = features
    coarse = functional.interpolate(coarse, scale_factor=2.0, mode='nearest')
    return torch.cat((functional.avg_pool2d(fine, 2), middle, coarse), dim=1)


def feature_channels(network: Any) -> int:
    """Return the number of channels that ``grid_features`` makes of a network's features."""
    return sum(int(branch[0].conv.in_channels) for branch in network.model[-1].cv2)


def _sources(layer: Any) -> list[int]:
    return [layer.f] if isinstance(layer.f, int) else list(layer.f)


def _require_design(network: Any, input_size: tuple[int, int]) -> None:
    layers, head = len(network.model), network.model[-1]
    strides = tuple(int(stride) for stride in network.stride)
    if layers != _LAYERS or strides != STRIDES or int(head.reg_max) != 1 or head.end2end:
        raise TrainingError(
            f'a network of {layers} layers and strides {strides} is not of the design that can '
            'be cut into stages; train one with `mmedge lab train detector`'
        )
    names = tuple(dict(network.names).values())
    if names != GRID_CLASSES:
        raise TrainingError(
            f'the network has the classes {", ".join(names)}, a feature grid holds '
            f'{", ".join(GRID_CLASSES)}; train one with these classes'
        )
    if input_size[0] % STRIDES[-1] or input_size[1] % STRIDES[-1]:
        raise TrainingError(
            f'an input of {input_size[0]} x {input_size[1]} px does not suit the network; '
            f'both sides must be multiples of {STRIDES[-1]}'
        )
