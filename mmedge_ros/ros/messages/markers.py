"""Tracks as markers for RViz: a body, a name, a velocity arrow and an uncertainty ellipse."""

from __future__ import annotations

import math

import numpy as np
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from mmedge_ros.core import data_types as core
from mmedge_ros.ros.messages.conversions import header
from mmedge_ros.viewing.drawing import colour_of

_BODY_WIDTH = 0.5
_BODY_HEIGHT = 1.7
_ARROW_SECONDS = 1.0


def track_markers(decision: core.Decision) -> MarkerArray:
    """Make the markers of a decision; the first one clears those of the last decision."""
    top = header(decision.state_ns, decision.frame_id)
    markers = [Marker(header=top, ns='tracks', action=Marker.DELETEALL)]
    for track in decision.tracks:
        colour = colour_of(track.id)
        markers += [
            _body(top, track, colour),
            _name(top, track),
            _arrow(top, track, colour),
            _ellipse(top, track, colour),
        ]
    return MarkerArray(markers=markers)


def _marker(top, ns: str, track: core.Track, kind: int, colour, alpha: float) -> Marker:
    marker = Marker(header=top, ns=ns, id=track.id, type=kind, action=Marker.ADD)
    red, green, blue = colour
    marker.color = ColorRGBA(r=red, g=green, b=blue, a=alpha)
    marker.pose.orientation.w = 1.0
    position = marker.pose.position
    position.x, position.y, position.z = (float(v) for v in track.position)
    return marker


def _body(top, track: core.Track, colour) -> Marker:
    alpha = 0.8 if track.box is not None else 0.35
    marker = _marker(top, 'body', track, Marker.CYLINDER, colour, alpha)
    marker.scale.x = marker.scale.y = _BODY_WIDTH
    marker.scale.z = _BODY_HEIGHT
    return marker


def _name(top, track: core.Track) -> Marker:
    marker = _marker(top, 'name', track, Marker.TEXT_VIEW_FACING, (1.0, 1.0, 1.0), 1.0)
    speed = math.hypot(*(float(v) for v in track.velocity[:2]))
    marker.text = f'{track.label} {track.id}  {speed:.1f} m/s'
    marker.scale.z = 0.3
    marker.pose.position.z += _BODY_HEIGHT / 2 + 0.3
    return marker


def _arrow(top, track: core.Track, colour) -> Marker:
    """Where the track would be in one second."""
    marker = _marker(top, 'velocity', track, Marker.ARROW, colour, 1.0)
    tip = track.position + _ARROW_SECONDS * track.velocity
    marker.points = [
        Point(**dict(zip('xyz', map(float, p), strict=True))) for p in (track.position, tip)
    ]
    marker.pose.position.x = marker.pose.position.y = marker.pose.position.z = 0.0
    marker.scale.x, marker.scale.y, marker.scale.z = 0.05, 0.12, 0.15
    return marker


def _ellipse(top, track: core.Track, colour) -> Marker:
    """One standard deviation of the position on the ground plane."""
    marker = _marker(top, 'uncertainty', track, Marker.CYLINDER, colour, 0.2)
    values, vectors = np.linalg.eigh(track.covariance[:2, :2])
    deviations = np.sqrt(np.maximum(values, 1e-6))
    angle = math.atan2(vectors[1, 1], vectors[0, 1])
    marker.pose.orientation.z = math.sin(angle / 2)
    marker.pose.orientation.w = math.cos(angle / 2)
    marker.pose.position.z -= _BODY_HEIGHT / 2
    marker.scale.x, marker.scale.y = 2 * float(deviations[1]), 2 * float(deviations[0])
    marker.scale.z = 0.01
    return marker


# Above the rig, where it hides nothing.
_HEIGHT = 2.5
_LETTERS = 0.25


def status_marker(decision: core.Decision, configuration: core.Configuration | None) -> Marker:
    """Make the text panel of a decision."""
    marker = Marker(
        header=header(decision.state_ns, decision.frame_id),
        ns='status',
        type=Marker.TEXT_VIEW_FACING,
        action=Marker.ADD,
        text=status_text(decision, configuration),
    )
    marker.pose.position.z = _HEIGHT
    marker.pose.orientation.w = 1.0
    marker.scale.z = _LETTERS
    marker.color.r = marker.color.g = marker.color.b = marker.color.a = 1.0
    return marker


def status_text(decision: core.Decision, configuration: core.Configuration | None) -> str:
    """Return the lines of the text panel."""
    ages = ', '.join(f'{m} {1e3 * age:.0f} ms' for m, age in decision.ages.items())
    count = len(decision.tracks)
    lines = [
        f'{count} track{"" if count == 1 else "s"}',
        f'latency {1e3 * decision.latency:.1f} ms, age {ages or "unknown"}',
        _configured(configuration),
    ]
    for word in ('skipped', 'late', 'lost'):
        modalities = getattr(decision, word)
        if modalities:
            lines.append(f'{word}: {", ".join(modalities)}')
    return '\n'.join([*lines, *(f'degraded: {reason}' for reason in decision.degraded)])


def _configured(configuration: core.Configuration | None) -> str:
    if configuration is None:
        return 'configuration: native rates, default levels'
    parts = ', '.join(part.words() for part in configuration.modalities)
    return f'configuration {configuration.id}: {parts or "native rates"}'
