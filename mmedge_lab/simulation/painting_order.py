"""The order of painting, so that what is nearer covers what is behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray


@dataclass(frozen=True, eq=False)
class Standing:
    """Something on the ground: a place (2,) m, or a prism with corners (4, 2) m.

    ``corners`` are counter-clockwise. ``left`` and ``right`` are the canvas columns it covers;
    it reaches ``reach`` m about its place, and stands ``height`` m high.
    """

    place: FloatArray
    left: float
    right: float
    corners: FloatArray | None = None
    reach: float = 0.0
    height: float = 0.0


def painting_order(eye: FloatArray, things: Sequence[Standing]) -> list[int]:
    """Return indices of ``things`` in the order to paint them, seen from ``eye`` (2,) m.

    Points go by distance. A prism is behind whatever lies, like the eye, outside one of its
    walls; no such wall, and it may hide the thing. Where the rules contradict each other, the
    farthest goes first.
    """
    if not things:
        return []
    away = np.array([thing.place for thing in things]) - eye
    distance = np.hypot(away[:, 0], away[:, 1])
    before = distance[:, None] > distance[None]
    prism = np.array([thing.corners is not None for thing in things])
    if prism.any():
        in_front = np.zeros(before.shape, bool)
        in_front[prism] = _in_front(eye, things)
        # Before a wall, or else behind it; of two prisms, neither of which is before a wall of
        # the other, the farther one goes first.
        before |= prism[:, None] & in_front
        before &= ~(prism[None] & in_front.T)
        hidden = prism[:, None] & ~prism[None] & ~in_front
        before &= ~hidden
        before |= hidden.T
    left = np.array([thing.left for thing in things])
    right = np.array([thing.right for thing in things])
    before &= (left[:, None] < right[None]) & (left[None] < right[:, None])
    np.fill_diagonal(before, False)
    return _sorted(before, distance)


def _in_front(eye: FloatArray, things: Sequence[Standing]) -> NDArray[np.bool_]:
    """Mark (P, T) the things that lie, like the eye, outside of a wall of each prism."""
    prisms = np.array([thing.corners for thing in things if thing.corners is not None])
    points = np.array(
        [
            np.broadcast_to(thing.place, (4, 2)) if thing.corners is None else thing.corners
            for thing in things
        ]
    )
    edges = np.roll(prisms, -1, axis=1) - prisms
    outward = np.stack([edges[..., 1], -edges[..., 0]], axis=-1)
    limit = (prisms * outward).sum(axis=-1)
    faces = outward @ eye > limit
    out = np.einsum('tkc,pfc->ptkf', points, outward) >= limit[:, None, None]
    return np.asarray((out.all(axis=2) & faces[:, None]).any(axis=2), bool)


def _sorted(before: NDArray[np.bool_], distance: FloatArray) -> list[int]:
    """Return a topological order; of what is ready, and in a circle, the farthest first."""
    waiting = before.sum(axis=0).tolist()
    followers = [np.flatnonzero(row).tolist() for row in before]
    farthest_first = np.argsort(-distance, kind='stable').tolist()
    order: list[int] = []
    while farthest_first:
        ready = (i for i in farthest_first if waiting[i] == 0)
        chosen = next(ready, farthest_first[0])
        farthest_first.remove(chosen)
        order.append(chosen)
        for follower in followers[chosen]:
            waiting[follower] -= 1
    return order
