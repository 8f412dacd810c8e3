"""Markers for RViz: tracks with name, velocity and uncertainty, a text panel, found moments."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from mmedge_ros.core import data_types as core
from mmedge_ros.memory.moment import Moment
from mmedge_ros.ros.messages.conversions import header, to_point
from mmedge_ros.viewing.drawing import colour_of

_WHITE = (1.0, 1.0, 1.0)
_BODY_WIDTH, _BODY_HEIGHT = 0.5, 1.7
_ARROW_SECONDS = 1.0
# Of the text panel: above the rig, where it hides nothing.
_PANEL_HEIGHT, _PANEL_LETTERS = 2.5, 0.25
_MOMENT_SIZE = 0.6


def _marker(
    top: Header,
    ns: str,
    number: int,
    kind: int,
    colour: tuple[float, float, float] = _WHITE,
    alpha: float = 1.0,
    scale: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Marker:
    marker = Marker(header=top, ns=ns, id=number, type=kind, action=Marker.ADD)
    red, green, blue = colour
    marker.color = ColorRGBA(r=red, g=green, b=blue, a=alpha)
    marker.pose.orientation.w = 1.0
    marker.scale.x, marker.scale.y, marker.scale.z = scale
    return marker


def _text(top: Header, ns: str, number: int, words: str, letters: float, place: Point) -> Marker:
    scale = (0.0, 0.0, letters)
    marker = _marker(top, ns, number, Marker.TEXT_VIEW_FACING, scale=scale)
    marker.text, marker.pose.position = words, place
    return marker


def _cleared(top: Header, ns: str, markers: Iterable[Marker]) -> MarkerArray:
    """Put what clears the markers of the last time before these."""
    return MarkerArray(markers=[Marker(header=top, ns=ns, action=Marker.DELETEALL), *markers])


def track_markers(decision: core.Decision) -> MarkerArray:
    """Make the markers of a decision; the first one clears those of the last decision."""
    top = header(decision.state_ns, decision.frame_id)
    return _cleared(top, 'tracks', (m for t in decision.tracks for m in _of_track(top, t)))


def _of_track(top: Header, track: core.Track) -> list[Marker]:
    colour = colour_of(track.id)
    size = (_BODY_WIDTH, _BODY_WIDTH, _BODY_HEIGHT)
    alpha = 0.8 if track.box is not None else 0.35
    body = _marker(top, 'body', track.id, Marker.CYLINDER, colour, alpha, size)
    body.pose.position = to_point(track.position)

    speed = math.hypot(*(float(v) for v in track.velocity[:2]))
    words = f'{track.label} {track.id}  {speed:.1f} m/s'
    up = np.array([0.0, 0.0, _BODY_HEIGHT / 2])
    above = to_point(track.position + up + (0.0, 0.0, 0.3))
    name = _text(top, 'name', track.id, words, 0.3, above)

    # Where it would be in one second.
    arrow = _marker(top, 'velocity', track.id, Marker.ARROW, colour, scale=(0.05, 0.12, 0.15))
    tip = track.position + _ARROW_SECONDS * track.velocity
    arrow.points = [to_point(track.position), to_point(tip)]

    # One standard deviation of the position on the ground plane.
    values, vectors = np.linalg.eigh(track.covariance[:2, :2])
    short, long = (2.0 * float(deviation) for deviation in np.sqrt(np.maximum(values, 1e-6)))
    size = (long, short, 0.01)
    ellipse = _marker(top, 'uncertainty', track.id, Marker.CYLINDER, colour, 0.2, size)
    ellipse.pose.position = to_point(track.position - up)
    angle = math.atan2(vectors[1, 1], vectors[0, 1])
    turn = ellipse.pose.orientation
    turn.z, turn.w = math.sin(angle / 2), math.cos(angle / 2)
    return [body, name, arrow, ellipse]


def status_marker(decision: core.Decision, configuration: core.Configuration | None) -> Marker:
    """Make the text panel of a decision."""
    top = header(decision.state_ns, decision.frame_id)
    words = status_text(decision, configuration)
    return _text(top, 'status', 0, words, _PANEL_LETTERS, Point(z=_PANEL_HEIGHT))


def status_text(decision: core.Decision, configuration: core.Configuration | None) -> str:
    """Return the lines of the text panel."""
    ages = ', '.join(f'{m} {1e3 * age:.0f} ms' for m, age in decision.ages.items())
    count = len(decision.tracks)
    configured = 'configuration: native rates, default levels'
    if configuration is not None:
        parts = ', '.join(part.words() for part in configuration.modalities)
        configured = f'configuration {configuration.id}: {parts or "native rates"}'
    lines = [
        f'{count} track{"" if count == 1 else "s"}',
        f'latency {1e3 * decision.latency:.1f} ms, age {ages or "unknown"}',
        configured,
    ]
    for word in ('skipped', 'late', 'lost'):
        modalities = getattr(decision, word)
        if modalities:
            lines.append(f'{word}: {", ".join(modalities)}')
    return '\n'.join([*lines, *(f'degraded: {reason}' for reason in decision.degraded)])


def moment_markers(moments: tuple[Moment, ...], frame_id: str, stamp_ns: int) -> MarkerArray:
    """Mark where moments were, the best one largest; those of an unknown place are left out."""
    top = header(stamp_ns, frame_id)
    markers = []
    for rank, moment in enumerate(moments):
        item = moment.shown.item
        if not all(map(math.isfinite, item.position)):
            continue
        size = _MOMENT_SIZE if rank else 2.0 * _MOMENT_SIZE
        colour = colour_of(item.track_id)
        body = _marker(top, 'moments', rank, Marker.SPHERE, colour, 0.9, (size, size, size))
        body.pose.position = to_point(item.position)
        words = f'{rank + 1}. {item.label} {item.track_id}  {moment.score:.2f}'
        x, y, z = item.position
        markers += [body, _text(top, 'names', rank, words, 0.4, to_point((x, y, z + size)))]
    return _cleared(top, 'moments', markers)
