"""How much two boxes in a picture have in common."""

from __future__ import annotations

from collections.abc import Sequence


def overlap(a: Sequence[float], b: Sequence[float]) -> float:
    """Intersection over union of two boxes (x0, y0, x1, y1); for a handful faster than arrays."""
    ax0, ay0, ax1, ay1 = a
    bx0, by0, bx1, by1 = b
    width = (bx1 if bx1 < ax1 else ax1) - (bx0 if bx0 > ax0 else ax0)
    if width <= 0.0:
        return 0.0
    height = (by1 if by1 < ay1 else ay1) - (by0 if by0 > ay0 else ay0)
    if height <= 0.0:
        return 0.0
    shared = width * height
    union = (ax1 - ax0) * (ay1 - ay0) + (bx1 - bx0) * (by1 - by0) - shared
    return float(shared / union) if union > 0.0 else 0.0
