"""What of a body the camera could see: its parts' outlines, its box, and what it covers.

An outline is exact: the rim of every sphere of a part as seen from the camera, and the convex
hull of a part's rims. The same hulls are painted, measured and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np
from numpy.typing import NDArray

from mmedge_lab.simulation.view import OUTLINE_POINTS, SHIFT, View, fixed_point, sphere_outlines
from mmedge_lab.simulation.world import Body, Mover, MoverState
from mmedge_ros.core.data_types import Box, FloatArray

# Bodies with nothing farther ahead than this are behind the camera, in metres; no mover that
# stands farther behind it reaches ahead.
_NEAREST = 0.3
_BEHIND = -5.0
# A larger mask of a body is made coarser, in pixels.
_LARGEST_MASK = 1500
# How much farther (m) a part counts when it is painted than it is: what is worn lies on top.
_LAYERS = {'skirt': -0.15, 'cap': -0.08, 'neck': 0.12, 'hips': 0.04}
# Painting order of a car's parts; wheels and lights go before or after by where they are.
_CAR_LAYERS = {'cabin': -6.0, 'roof': -7.0}
_CAR_SIDES = {'wheel': 1, 'head_light': 0, 'tail_light': 0}


@dataclass(frozen=True, eq=False)
class Outline:
    """A mover as seen at one instant; parts are in painting order, far to near.

    ``rims`` (N, K, 2) are the spheres' rims in canvas pixels and ``middles`` (N, 2) their
    centres, ``depths`` (N,) m. ``parts`` are indices into the body, ``hulls`` the indices into
    a part's rims (M * K) that make its hull. ``bounds`` are the least and largest column and
    row, x0, y0, x1, y1, ``depth`` the mean depth.
    """

    mover: Mover
    state: MoverState
    body: Body
    rims: FloatArray
    middles: FloatArray
    depths: FloatArray
    parts: tuple[int, ...]
    hulls: tuple[NDArray[np.int32], ...]
    bounds: tuple[float, float, float, float]
    depth: float
    box: Box | None


def outlines_of(movers: Sequence[Mover], t: float, view: View) -> list[Outline]:
    """Return what can be seen of movers at an instant; those behind the camera are left out."""
    ahead = view.to_optical.rotation[2]
    states = [(mover, mover.state(t)) for mover in movers]
    near = [
        (mover, state, mover.body(t))
        for mover, state in states
        if float(ahead @ (state.position - view.position)) > _BEHIND
    ]
    if not near:
        return []
    # All spheres of all movers at once: most of the work is the same for each of them.
    optical = view.to_optical.apply(np.concatenate([body.centres for _, _, body in near]))
    radii = np.concatenate([body.radii for _, _, body in near])
    rims = sphere_outlines(optical, radii)
    canvas, middles = view.canvas(rims), view.canvas(optical)
    flat = canvas.astype(np.float32).reshape(-1, 2)
    ends = np.cumsum([len(body.radii) for _, _, body in near]).tolist()
    spans = [slice(a, b) for a, b in pairwise([0, *ends])]
    # Bent by the lens, what is outermost stays on the hull but for a hundredth of a pixel.
    k = OUTLINE_POINTS
    around = [_hull(flat[k * span.start : k * span.stop]) + k * span.start for span in spans]
    pixels = view.lens.project(rims.reshape(-1, 3)[np.concatenate(around)])
    bounds = np.split(pixels, np.cumsum([len(hull) for hull in around])[:-1])
    return [
        _outline(
            (*mover, canvas[span], middles[span], optical[span, 2]),
            flat[k * span.start : k * span.stop],
            _box(own, view),
            view,
        )
        for mover, span, own in zip(near, spans, bounds, strict=True)
        if float(optical[span, 2].max()) > _NEAREST
    ]


def _outline(
    fields: tuple[Mover, MoverState, Body, FloatArray, FloatArray, FloatArray],
    flat: NDArray[np.float32], box: Box | None, view: View,
) -> Outline:  # fmt: skip
    """Make an outline of its first fields and all rims in a row (N * K, 2)."""
    mover, state, body, _, _, depths = fields
    parts = _painting_order(mover.label, state, body, depths, view)
    first = [OUTLINE_POINTS * begin for begin in body.first]
    hulls = tuple(_hull(flat[first[p] : first[p + 1]]) for p in parts)
    x0, y0 = flat.min(axis=0).tolist()
    x1, y1 = flat.max(axis=0).tolist()
    if x1 < 0.0 or y1 < 0.0 or x0 > view.lens.width or y0 > view.lens.height:
        box = None
    return Outline(*fields, parts, hulls, (x0, y0, x1, y1), float(depths.mean()), box)


def _hull(points: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the indices of those of points (N, 2) that make their hull."""
    return np.asarray(cv2.convexHull(points, returnPoints=False), np.int32).ravel()


def _box(pixels: FloatArray, view: View) -> Box | None:
    """Return the box of pixels (N, 2), cut at the picture; its edges are those of pixels."""
    camera = view.lens.camera
    x0, y0 = (pixels.min(axis=0) + 0.5).tolist()
    x1, y1 = (pixels.max(axis=0) + 0.5).tolist()
    box = Box(max(x0, 0.0), max(y0, 0.0), min(x1, camera.width), min(y1, camera.height))
    return box if box.width > 0.0 and box.height > 0.0 else None


def _painting_order(
    label: str, state: MoverState, body: Body, depths: FloatArray, view: View
) -> tuple[int, ...]:
    first = np.array(body.first)
    means = np.add.reduceat(depths, first[:-1]) / np.diff(first)
    if label == 'car':
        means = _car_layers(state, body, view)
    else:
        means += [_LAYERS.get(name, 0.0) for name in body.names]
    return tuple(np.argsort(-means, kind='stable').tolist())


def _car_layers(state: MoverState, body: Body, view: View) -> FloatArray:
    """Return the order of a car's parts: what is on its far side lies behind its body."""
    ahead = np.array([np.cos(state.heading), np.sin(state.heading)])
    axes = (ahead, np.array([-ahead[1], ahead[0]]))
    layers = np.zeros(len(body.names))
    for i, name in enumerate(body.names):
        layers[i] = _CAR_LAYERS.get(name, 0.0)
        if name in _CAR_SIDES:
            place = body.centres[body.first[i], :2]
            axis = axes[_CAR_SIDES[name]]
            out = axis * np.sign(axis @ (place - state.position[:2]))
            layers[i] = -1.0 if out @ (view.position[:2] - place) > 0.0 else 1.0
    return layers


def paint_ids(ids: NDArray[np.uint8], outline: Outline, number: int) -> float:
    """Enter a mover as ``number`` into a canvas (H, W); return its whole area in pixels.

    The area counts what lies outside of the canvas too.
    """
    height, width = ids.shape
    x0, y0, x1, y1 = (round(v) for v in outline.bounds)
    x0, y0, x1, y1 = x0 - 2, y0 - 2, x1 + 3, y1 + 3
    size = (y1 - y0, x1 - x0)
    coarse = max(1, -(-max(size) // _LARGEST_MASK))
    whole = np.zeros((size[0] // coarse + 1, size[1] // coarse + 1), np.uint8)
    fixed = fixed_point((outline.rims - (x0, y0)) / coarse).reshape(-1, 2)
    first = outline.body.first
    for part, hull in zip(outline.parts, outline.hulls, strict=True):
        points = fixed.take(hull + first[part] * OUTLINE_POINTS, axis=0)
        cv2.fillConvexPoly(whole, points, number, cv2.LINE_8, SHIFT)
    area = float(cv2.countNonZero(whole)) * coarse * coarse
    left, top, right, bottom = max(x0, 0), max(y0, 0), min(x1, width), min(y1, height)
    if right > left and bottom > top:
        if coarse > 1:
            larger = (whole.shape[1] * coarse, whole.shape[0] * coarse)
            whole = np.asarray(cv2.resize(whole, larger, interpolation=cv2.INTER_NEAREST))
        part_seen = whole[top - y0 : bottom - y0, left - x0 : right - x0]
        cv2.copyTo(part_seen, part_seen, ids[top:bottom, left:right])
    return area
