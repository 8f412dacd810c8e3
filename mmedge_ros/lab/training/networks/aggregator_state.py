"""What aggregators keep and return.

Sizes: B windows, C channels of a grid, W of the aggregate, K remembered units, H x V cells.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


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


class Aggregate(NamedTuple):
    """A window's summary.

    ``pooled`` (B, W, H, V); ``newest`` (B, C, H, V), the newest unit's grid or zeros; ``facts``
    (B, 3): 1 if there is a unit and 0 else, seconds from the newest unit to the window's end
    (0 without one), and the logarithm of 1 + the number of units.
    """

    pooled: Tensor
    newest: Tensor
    facts: Tensor
