"""What each state of power leaves to sensing, by a rule that can be read off a page.

The order is that of measured curves (docs/adaptation.md): encoding fewer pictures and following
objects in the others costs the least accuracy for the time it saves, then the largest level, then
scans of the radar, which save supply more than time. The rate of the camera is never lowered:
tracks break.
"""

from __future__ import annotations

from dataclasses import dataclass

from mmedge_ros.adaptation.power_policy import PowerMode, PowerState

# At alpha 0 one picture of so many is encoded.
SPARSEST = 6
# From this alpha down, the most expensive level is not used any more; and the radar's rates (Hz).
_LEVEL_ALPHA, _LEVEL = 1.0, 'medium'
_RADAR = ((0.25, 5.0), (0.5, 10.0))
# While perception is awake in CRITICAL.
BURST_RATE = 10.0
_CRITICAL_RADAR_RATE = 10.0
# What nobody's safety hangs on comes this seldom (s) when nothing is left.
_RAREST = 1.0


def least_gap(alpha: float) -> float:
    """Return the least time (s) between annotated pictures, or remembered ones; 0 at alpha 1."""
    return _RAREST * (1.0 - alpha) if 0.0 <= alpha <= 1.0 else 0.0


@dataclass(frozen=True)
class PowerAllowance:
    """Bounds on sensing; 0 and '' leave free. ``reuse`` n: at most every n-th picture is encoded.

    Rates in Hz; ``level`` is the most expensive one.
    """

    reuse: int = 1
    level: str = ''
    camera_rate: float = 0.0
    radar_rate: float = 0.0


def allowance_of(state: PowerState) -> PowerAllowance:
    """Return what a state of power leaves to sensing, in CRITICAL while perception is awake."""
    if state.mode is PowerMode.UNCONSTRAINED:
        return PowerAllowance()
    if state.mode is PowerMode.CRITICAL:
        # In few pictures people must be found and confirmed: every one is encoded.
        return PowerAllowance(1, _LEVEL, BURST_RATE, _CRITICAL_RADAR_RATE)
    reuse = 1 + round((SPARSEST - 1) * (1.0 - state.alpha))
    level = _LEVEL if state.alpha < _LEVEL_ALPHA else ''
    radar_rate = next((rate for alpha, rate in _RADAR if state.alpha < alpha), 0.0)
    return PowerAllowance(reuse, level, 0.0, radar_rate)
