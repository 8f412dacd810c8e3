"""How bright things come out: sun and sky, the pools of lamps, and fog."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from mmedge_ros.data_types import FloatArray
from mmedge_ros.lab.simulation.world import Lamp, Light

# Lamps of sodium and warm white, BGR.
LAMP_COLOUR = np.array([0.55, 0.82, 1.08])
_LAMP_PEAK = 0.75
# At the meteorological visibility 5 % of a contrast is left (Koschmieder's law).
_KOSCHMIEDER = -math.log(0.05)
# Clear air still has haze enough to pale what is a kilometre away.
_CLEAR = 1800.0


def level_ground_light(light: Light) -> tuple[FloatArray, FloatArray]:
    """Return BGR factors (3,) of the sky's and of the sun's light on level ground."""
    tint = np.array(light.tint)
    return light.ambient * tint, light.sun * max(float(light.sun_direction[2]), 0.05) * tint


def lamp_light(lamp: Lamp, away: FloatArray) -> FloatArray:
    """Return BGR factors (..., 3) of a lit lamp at ``away`` (...) m along the ground."""
    share = np.clip(1.0 - (away / lamp.reach) ** 2, 0.0, 1.0)
    # Between an even disc and the inverse square law, as real luminaires spread their light.
    fall = share**2 / (1.0 + (away / (0.45 * lamp.reach)) ** 2)
    return np.asarray(_LAMP_PEAK * fall[..., None] * LAMP_COLOUR, np.float64)


def lamps_at(lamps: Iterable[Lamp], place: FloatArray) -> FloatArray:
    """Return BGR factors (3,) of all lit lamps together at a place (2,) m."""
    total = np.zeros(3)
    for lamp in lamps:
        if lamp.lit:
            away = np.hypot(*(place - lamp.position))
            if away < lamp.reach:
                total += lamp_light(lamp, away)
    return total


def air_colour(light: Light) -> FloatArray:
    """Return the BGR grey levels (3,) that things fade to with distance."""
    return np.asarray(light.sky[0], np.float64)


def extinction(light: Light) -> float:
    """Return the share of light lost per metre of air (1/m)."""
    return _KOSCHMIEDER / min(light.fog_visibility, _CLEAR)


def clearness(light: Light, distance: float) -> float:
    """Return the share (0..1) of light that comes through ``distance`` m of air."""
    return math.exp(-extinction(light) * distance)
