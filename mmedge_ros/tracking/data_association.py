"""Which measurement belongs to which track: gated costs, and the Hungarian assignment."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from mmedge_ros.core.data_types import FloatArray

# Dear enough never to be chosen beside any gated cost, finite because scipy wants it so.
_FORBIDDEN = 1e6


def prepare() -> None:
    """Begin to load what `assign` needs, in a thread: a node is started sooner without it."""
    threading.Thread(target=_load, name='association', daemon=True).start()


def _load() -> None:
    import scipy.optimize  # noqa: F401


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
    if allowed.sum(axis=0).max() > 1 or allowed.sum(axis=1).max() > 1:
        from scipy.optimize import linear_sum_assignment  # see `prepare`

        rows, columns = linear_sum_assignment(np.where(allowed, cost, _FORBIDDEN))
        good = allowed[rows, columns]
        rows, columns = rows[good], columns[good]
    else:
        rows, columns = np.nonzero(allowed)
    pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
    taken_rows, taken_columns = {row for row, _ in pairs}, {column for _, column in pairs}
    return Assignment(
        pairs,
        [row for row in range(n_rows) if row not in taken_rows],
        [column for column in range(n_columns) if column not in taken_columns],
    )


def intersection_over_union(first: FloatArray, second: FloatArray) -> FloatArray:
    """IoU of every box of ``first`` (N, 4) with every one of ``second`` (M, 4): (N, M)."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    overlap = _area(high - low)
    area_first, area_second = (
        _area(first[:, 2:] - first[:, :2]),
        _area(second[:, 2:] - second[:, :2]),
    )
    union = area_first[:, None] + area_second - overlap
    shares: FloatArray = np.divide(overlap, union, out=np.zeros_like(overlap), where=union > 0.0)
    return shares


def _area(edges: FloatArray) -> FloatArray:
    """Areas (...) of boxes with edges (..., 2), none where one is negative."""
    edges = np.maximum(edges, 0.0)
    area: FloatArray = edges[..., 0] * edges[..., 1]
    return area
