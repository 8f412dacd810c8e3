"""Configuration, latency and age in words, as a marker that RViz shows as a text panel."""

from __future__ import annotations

from visualization_msgs.msg import Marker

from mmedge_ros import data_types as core
from mmedge_ros.ros.messages.conversions import header

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
    parts = [
        ' '.join(
            filter(None, [m.modality, f'{m.rate:g} Hz' if m.rate else 'native rate', m.level])
        )
        for m in configuration.modalities
    ]
    return f'configuration {configuration.id}: {", ".join(parts) or "native rates"}'
