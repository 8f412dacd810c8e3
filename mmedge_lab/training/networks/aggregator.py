"""Temporal aggregation of one modality's units, for training (MMEdge, section 4.1).

Several windows are stepped at once, unit by unit. In flight `StreamingAggregator` does the same
with the parts that `export` takes apart, and finds neighbours by the same rules.

Sizes: B windows, C channels of a grid, W of the aggregate, K remembered units, H x V cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from mmedge_ros.encoding.feature_grid import COLUMNS, ROWS
from mmedge_ros.windows.temporal_rules import (
    LAG_TOLERANCE,
    LAGS,
    LARGEST_EXPONENT,
    NEIGHBOUR_TOLERANCE,
    OLDEST,
    REMEMBERED,
)

WIDTH = 32
# Per second; from the mean of the window to little more than its last unit.
_SLOWEST_DECAY, _FASTEST_DECAY = 0.3, 30.0


class Running(NamedTuple):
    """What the units so far have left behind, apart from the recent ones themselves.

    ``seconds`` (B, K): from the recent units, newest first, to the window's end; ``count``
    (B, 1) of all units. ``pending`` (B, W, H, V) is the newest unit's encoding without the
    channels it takes from the unit after it, which is still to come; ``total`` (B, W, H, V)
    and ``weight`` (B, W) are sums over the units before it.
    """

    seconds: Tensor
    count: Tensor
    pending: Tensor
    total: Tensor
    weight: Tensor


class Thirds(NamedTuple):
    """Channels of a unit: for the unit after it, its own, and for the unit before it."""

    onward: Tensor
    kept: Tensor
    back: Tensor


class NetworkAggregate(NamedTuple):
    """A window's summary.

    ``pooled`` (B, W, H, V); ``newest`` (B, C, H, V), the newest unit's grid or zeros; ``facts``
    (B, 3): 1 if there is a unit and 0 else, seconds from the newest unit to the window's end
    (0 without one), and the logarithm of 1 + the number of units.
    """

    pooled: Tensor
    newest: Tensor
    facts: Tensor


class Standardise(nn.Module):  # type: ignore[misc]
    """Shifts and scales channels by constants that are set once from data and never learned."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer('mean', torch.zeros(1, channels, 1, 1))
        self.register_buffer('scale', torch.ones(1, channels, 1, 1))

    def set_statistics(self, mean: Tensor, deviation: Tensor) -> None:
        """Enter means and standard deviations (C,); a channel without spread is only shifted."""
        spread = torch.where(deviation > 1e-3, deviation, torch.ones_like(deviation))
        self.mean.copy_(mean.reshape(self.mean.shape))
        self.scale.copy_((1.0 / spread).reshape(self.scale.shape))

    def forward(self, grid: Tensor) -> Tensor:
        return (grid - self.mean) * self.scale

    def then(self, layer: nn.Conv2d, grid: Tensor) -> Tensor:
        """Apply a 1 x 1 convolution to the standardised grid, in one go."""
        weight = layer.weight * self.scale
        bias = layer.bias - (weight * self.mean).sum(dim=(1, 2, 3))
        return functional.conv2d(for_convolution(grid), weight, bias)


def for_convolution(grid: Tensor) -> Tensor:
    """Return a grid as convolutions are fastest with it: several times over when training."""
    device = grid.device.type
    mixed = torch.is_autocast_enabled(device)
    grid = grid.to(torch.get_autocast_dtype(device) if mixed else torch.float32)
    return grid.contiguous(memory_format=torch.channels_last)


class Aggregator(nn.Module):  # type: ignore[misc]
    """Alternating temporal shift, differences in time, temporal encoder, weighted pooling.

    In the shift, a third of the channels comes from the unit before, a third from the unit
    after, and the rest stays. Neighbours are looked for in *time*; where there is none, a unit
    keeps its own. Positive and negative parts of differences are encoded apart, and before they
    are pooled: the mean of plain differences would see the first and last unit only.

    :param shift: False: every unit keeps its own channels
    :param differences: False: no temporal differences
    :param aggregation: False: the newest unit counts, as if it were alone in its window
    """

    def __init__(
        self,
        channels: int,
        width: int = WIDTH,
        *,
        shift: bool = True,
        differences: bool = True,
        aggregation: bool = True,
    ) -> None:
        super().__init__()
        self.channels, self.width, self.group = channels, width, width // 3
        self.shift, self.differences, self.aggregation = shift, differences, aggregation
        self.standardise = Standardise(channels)
        self.projection = nn.Conv2d(channels, width, 1)
        # One layer of 1 x 1 convolutions, taken apart by where its inputs come from: what the
        # next unit brings is added when it is there, and nothing is copied to be side by side.
        self.from_previous = nn.Conv2d(self.group, width, 1, bias=False)
        self.from_own = nn.Conv2d(width - 2 * self.group, width, 1)
        self.from_following = nn.Conv2d(self.group, width, 1, bias=False)
        self.from_changes = nn.ModuleList(
            nn.Conv2d(width, width, 1, bias=False)
            for _ in range(2 * len(LAGS) if differences else 0)
        )
        self.spatial = nn.Conv2d(width, width, 3, padding=1, groups=width)
        decays = torch.logspace(0.0, 1.0, width, _FASTEST_DECAY / _SLOWEST_DECAY) * _SLOWEST_DECAY
        self.decay = nn.Parameter(decays.expm1().log())  # softplus makes them the decays
        self.register_buffer('lags', torch.tensor(LAGS).reshape(1, -1, 1), persistent=False)

    def forward(self, grids: Tensor, seconds_to_end: Tensor, valid: Tensor) -> NetworkAggregate:
        """Step through whole windows in the order of stamps, and finish them.

        :param grids: (B, N, C, H, V), in any order
        :param seconds_to_end: (B, N)
        :param valid: (B, N), 0 for places without a unit
        """
        batch = len(grids)
        rows = torch.arange(batch, device=grids.device)
        running = self._nothing(batch)
        last = self._thirds(running.total)
        newest = grids.new_zeros(batch, self.channels, ROWS, COLUMNS)
        recent: list[list[Tensor]] = [[] for _ in range(batch)]
        for place in _places_by_time(seconds_to_end, valid > 0):
            grid, seconds, now = (
                grids[rows, place],
                seconds_to_end[rows, place],
                valid[rows, place],
            )
            begun = running if self.aggregation else self._nothing(batch)
            own = self._projected(grid)
            thirds = self._thirds(own)
            choice = self._lag_choice(begun, seconds).tolist()
            singles = own.split(1)
            lagged = [
                torch.cat([recent[b][k] if k >= 0 else singles[b] for b, k in enumerate(chosen)])
                for chosen in zip(*choice, strict=True)
            ]
            after = self._advanced(begun, last, own, thirds, lagged, seconds)
            taken = now > 0
            if bool(taken.all()):
                running, last, newest = after, thirds, grid
            else:
                running = Running(*_where_each(taken, after, running))
                last = Thirds(*_where_each(taken, thirds, last))
                newest = _where(taken, grid, newest)
            for b in taken.nonzero().flatten().tolist():
                recent[b] = [singles[b], *recent[b][: REMEMBERED - 1]]
        return self._summary(running, last, newest)

    def _nothing(self, batch: int) -> Running:
        zeros = self.decay.new_zeros
        # Laid out like all that is added to it, which halves the time of a training step.
        grid = for_convolution(zeros(batch, self.width, ROWS, COLUMNS))
        return Running(
            zeros(batch, REMEMBERED),
            zeros(batch, 1),
            grid,
            grid,
            zeros(batch, self.width),
        )

    def _projected(self, grid: Tensor) -> Tensor:
        return functional.relu(self.standardise.then(self.projection, grid))

    def _lag_choice(self, running: Running, seconds: Tensor) -> Tensor:
        """Return which recent unit is compared at each lag: (B, lags), -1 for none."""
        gaps = (running.seconds - seconds.unsqueeze(1)).unsqueeze(1)
        misses = (gaps - self.lags).abs()
        places = torch.arange(REMEMBERED, device=seconds.device)
        filled = (places < running.count).unsqueeze(1)
        misses = torch.where(filled, misses, torch.full_like(misses, 1e6))
        nearest = misses.argmin(dim=2)
        within = misses.amin(dim=2) <= LAG_TOLERANCE
        return torch.where(within, nearest, torch.full_like(nearest, -1))

    def _advanced(
        self,
        begun: Running,
        last: Thirds,
        own: Tensor,
        thirds: Thirds,
        lagged: list[Tensor],
        seconds: Tensor,
    ) -> Running:
        """Complete the encoding of the unit before, and begin that of the new one.

        :param last: of the projected unit before; ``thirds`` are those of the new one, ``own``
        :param lagged: for each lag what it is compared with: itself where there is none
        """
        previous, following = thirds.onward, last.back
        if self.shift:
            gap = begun.seconds[:, 0] - seconds
            near = (begun.count[:, 0] > 0) & (gap <= NEIGHBOUR_TOLERANCE)
            previous = _where(near, last.onward, thirds.onward)
            following = _where(near, thirds.back, last.back)
        total, weight = self._pooled_up_to(begun, following)
        pending = self.from_own(thirds.kept) + self.from_previous(previous)
        if self.differences:
            changes = [own - earlier for earlier in lagged]
            signed = [part for change in changes for part in (change, -change)]
            for layer, part in zip(self.from_changes, signed, strict=True):
                pending = pending + layer(functional.relu(part))
        return Running(
            torch.cat((seconds.unsqueeze(1), begun.seconds[:, : REMEMBERED - 1]), dim=1),
            begun.count + 1.0,
            pending,
            total,
            weight,
        )

    def _thirds(self, unit: Tensor) -> Thirds:
        sizes = (self.group, self.width - 2 * self.group, self.group)
        return Thirds(*unit.split(sizes, dim=1))

    def _pooled_up_to(self, running: Running, following: Tensor) -> tuple[Tensor, Tensor]:
        """Return total and weight with the pending unit, given what follows it."""
        pending = running.pending + self.from_following(following)
        encoded = functional.relu(self.spatial(pending))
        age = running.seconds[:, :1].clamp(0.0, OLDEST)
        exponent = (functional.softplus(self.decay) * age).clamp(max=LARGEST_EXPONENT)
        share = torch.exp(-exponent) * (running.count > 0)
        total = torch.addcmul(running.total, share[:, :, None, None], encoded.to(share.dtype))
        return total, running.weight + share

    def _summary(self, running: Running, last: Thirds, newest: Tensor) -> NetworkAggregate:
        """Close the window: the newest unit has none after it and keeps its own channels."""
        total, weight = self._pooled_up_to(running, last.back)
        present = (running.count > 0).to(weight.dtype)
        age = running.seconds[:, :1].clamp(0.0, OLDEST) * present
        pooled = total / (weight + (1.0 - present))[:, :, None, None]
        return NetworkAggregate(
            pooled, newest, torch.cat((present, age, running.count.log1p()), dim=1)
        )


def _places_by_time(seconds_to_end: Tensor, valid: Tensor) -> tuple[Tensor, ...]:
    """Return for each step the place (B,) of the unit to take; windows that are through repeat."""
    steps = int(valid.sum(dim=1).max()) if valid.numel() else 0
    key = torch.where(valid, -seconds_to_end, torch.full_like(seconds_to_end, torch.inf))
    # Stable, so that units of one stamp stay as they came.
    order = torch.argsort(key, dim=1, stable=True)
    return tuple(order[:, :steps].unbind(1))


def _where(chosen: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """Choose per window; ``chosen`` is (B,)."""
    return torch.where(chosen.reshape(-1, *[1] * (yes.dim() - 1)), yes, no)


def _where_each(
    chosen: Tensor, yes: tuple[Tensor, ...], no: tuple[Tensor, ...]
) -> Iterator[Tensor]:
    return (_where(chosen, *pair) for pair in zip(yes, no, strict=True))
