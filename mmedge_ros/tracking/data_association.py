"""Which measurement belongs to which track: gated costs, and the Hungarian assignment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from mmedge_ros.data_types import FloatArray

# Dear enough never to be chosen beside any gated cost, finite because scipy wants it so.
_FORBIDDEN = 1e6


class Assignment(NamedTuple):
    """Pairs of (row, column), and what stayed alone, each in ascending order."""

    pairs: list[tuple[int, int]]
    rows: list[int]
    columns: list[int]


def assign(cost: FloatArray) -> Assignment:
    """Assign rows to columns at least total cost.

    :param cost: (N, M); infinite (or NaN) where a pair is outside the gate
    """
    n_rows, n_columns = cost.shape
    if not n_rows or not n_columns:
        return Assignment([], list(range(n_rows)), list(range(n_columns)))
    allowed = np.isfinite(cost)
    chosen = linear_sum_assignment(np.where(allowed, cost, _FORBIDDEN))
    pairs = [(int(r), int(c)) for r, c in zip(*chosen, strict=True) if allowed[r, c]]
    rows = sorted(set(range(n_rows)) - {r for r, _ in pairs})
    columns = sorted(set(range(n_columns)) - {c for _, c in pairs})
    return Assignment(pairs, rows, columns)


def intersection_over_union(first: FloatArray, second: FloatArray) -> FloatArray:
    """IoU of every box of ``first`` (N, 4) with every one of ``second`` (M, 4): (N, M)."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    overlap = np.prod(np.clip(high - low, 0.0, None), axis=2)
    area_first = np.prod(np.clip(first[:, 2:] - first[:, :2], 0.0, None), axis=1)
    area_second = np.prod(np.clip(second[:, 2:] - second[:, :2], 0.0, None), axis=1)
    union = area_first[:, None] + area_second[None, :] - overlap
    shares: FloatArray = np.divide(overlap, union, out=np.zeros_like(overlap), where=union > 0.0)
    return shares
