"""The recogniser: a small residual network over crops, supervised at each of its taps.

A tap is the mean of a feature map in three strips, upper to lower: what is worn above is not mixed
with what is worn below. Every tap is taught to tell the classes apart (deep supervision), because
whether a semantic memory can leave there is a matter of training.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from mmedge_ros.encoding.classifier_description import ATTRIBUTES, EXIT, LOGITS

STRIPS = 3
WIDTHS = (24, 48, 96)
SIZE = (32, 48)  # width and height of the input, px
_LEAST_CONTRAST = 0.05


class _Convolution(nn.Sequential):  # type: ignore[misc]
    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after), nn.ReLU()
        )


class _Residual(nn.Module):  # type: ignore[misc]
    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = _Convolution(width, width)
        self.second = nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        )

    def forward(self, features: Tensor) -> Tensor:
        return torch.relu(features + self.second(self.first(features)))


class _Eye(nn.Module):  # type: ignore[misc]
    """The first stage: crops as they are, with equal light and contrast, and how high up it is."""

    def __init__(self) -> None:
        super().__init__()
        height, width = SIZE[1], SIZE[0]
        rows = torch.linspace(-1.0, 1.0, height)[:, None].expand(height, width)
        self.register_buffer('rows', rows[None, None].clone())
        self.blocks = nn.Sequential(_Convolution(7, WIDTHS[0], 2), _Convolution(*WIDTHS[:1] * 2))

    def forward(self, crops: Tensor) -> Tensor:
        middle = crops.mean(dim=(1, 2, 3), keepdim=True)
        spread = (crops - middle).square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
        equal = (crops - middle) / (spread + _LEAST_CONTRAST)
        rows = self.rows + 0.0 * crops[:, :1]
        found: Tensor = self.blocks(torch.cat((crops, equal, rows), dim=1))
        return found


def _stage(before: int, after: int, residuals: int) -> nn.Sequential:
    return nn.Sequential(
        _Convolution(before, after, 2), *(_Residual(after) for _ in range(residuals))
    )


class RecogniserNetwork(nn.Module):  # type: ignore[misc]
    """Crops (N, 3, 48, 32) to classes and attributes, at each of three taps and at the end.

    :param classes: how many there are
    :param attributes: how many logits describe the attributes
    """

    def __init__(self, classes: int, attributes: int) -> None:
        super().__init__()
        self.classes = classes
        self.bodies = nn.ModuleList(
            (_Eye(), _stage(WIDTHS[0], WIDTHS[1], 1), _stage(WIDTHS[1], WIDTHS[2], 1))
        )
        self.last = nn.Sequential(*(_Residual(WIDTHS[2]) for _ in range(4)))
        self.heads = nn.ModuleList(
            nn.Linear(STRIPS * width, classes + attributes) for width in (*WIDTHS, WIDTHS[2])
        )

    def forward(self, crops: Tensor) -> list[Tensor]:
        """Return the logits (N, classes + attributes) of each tap, and last those of the end."""
        return [head(vector) for head, vector in zip(self.heads, self.vectors(crops), strict=True)]

    def vectors(self, crops: Tensor) -> list[Tensor]:
        """Return the vector (N, D_l) of each tap, and last that of the end."""
        found, features = [], crops
        for body in (*self.bodies, self.last):
            features = body(features)
            found.append(pooled(features))
        return found

    def stages(self) -> Sequence[RecogniserStage]:
        """Return what runs one after another when it flies."""
        bodies = [*self.bodies, self.last]
        return [
            RecogniserStage(body, head, self.classes, number, number == len(bodies))
            for number, (body, head) in enumerate(zip(bodies, self.heads, strict=True), start=1)
        ]


class RecogniserStage(nn.Module):  # type: ignore[misc]
    """One stage: its tap, what its head says and its activation; or both logits at the end.

    It takes the tensor named in ``reads`` and puts out those named in ``writes``.
    """

    def __init__(
        self, body: nn.Module, head: nn.Linear, classes: int, number: int, is_last: bool
    ) -> None:
        super().__init__()
        self.reads = (f'features_{number - 1}',)
        self.writes: tuple[str, ...] = (f'tap_{number}', EXIT.format(number), f'features_{number}')
        if is_last:
            self.writes = (LOGITS, ATTRIBUTES)
        self.body, self.head = body, head
        self.classes, self.is_last = classes, is_last

    def forward(self, features: Tensor) -> tuple[Tensor, ...]:
        features = self.body(features)
        vector = pooled(features)
        values = self.head(vector)
        if self.is_last:
            return values[:, : self.classes], values[:, self.classes :]
        return vector, values, features


def pooled(features: Tensor) -> Tensor:
    """Return the mean (N, 3 * C) of a feature map (N, C, h, w) in three strips."""
    height, width = features.shape[2:]
    strips = nn.functional.avg_pool2d(features, (height // STRIPS, width))
    return strips.flatten(1)
