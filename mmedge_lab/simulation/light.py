"""How a scene is lit, each time a little differently, and how bright things come out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from mmedge_lab.simulation.hardships import Hardships
from mmedge_lab.simulation.scenario import SeedStream, generator
from mmedge_lab.simulation.world import Lamp, SceneLight
from mmedge_ros.core.data_types import FloatArray

Range = tuple[float, float]
Colour = tuple[float, float, float]


@dataclass(frozen=True)
class _Preset:
    """Ranges that a light's numbers are drawn from; angles in degrees, exposure in ms."""

    elevation: Range
    sun: Range
    ambient: Range
    tint: Colour
    exposure_ms: Range
    noise: Range
    horizon: Colour
    zenith: Colour
    fog_visibility: Range = (math.inf, math.inf)


# Camera gain is part of ``sun`` and ``ambient``: they scale how bright an albedo comes out.
_PRESETS = {
    'day': _Preset(
        (25, 65), (0.75, 1.05), (0.42, 0.56), (1.0, 1.0, 1.0), (1.0, 2.0), (1.0, 1.8),
        (225, 215, 200), (215, 165, 110),
    ),
    'dusk': _Preset(
        (4, 10), (0.26, 0.4), (0.24, 0.34), (0.82, 0.95, 1.12), (7.0, 9.0), (2.5, 4.0),
        (120, 140, 200), (110, 75, 60),
    ),
    'night': _Preset(
        (20, 60), (0.07, 0.12), (0.18, 0.34), (1.25, 1.0, 0.85), (16.0, 25.0), (5.0, 8.0),
        (38, 26, 20), (22, 12, 8),
    ),
    'lamps': _Preset(
        (20, 60), (0.02, 0.04), (0.15, 0.22), (0.85, 0.95, 1.15), (12.0, 20.0), (4.5, 7.0),
        (40, 32, 28), (24, 14, 10),
    ),
    'fog': _Preset(
        (20, 50), (0.04, 0.1), (0.62, 0.8), (1.03, 1.0, 0.98), (2.0, 4.0), (1.2, 2.2),
        (200, 198, 195), (205, 203, 200), (80.0, 200.0),
    ),
}  # fmt: skip


def draw_light(name: str, seed: int) -> SceneLight:
    """Draw the light of one flight from the ranges of ``name``."""
    preset = _PRESETS[name]
    random = generator(seed, SeedStream.LIGHT)
    azimuth = random.uniform(-math.pi, math.pi)
    elevation = math.radians(random.uniform(*preset.elevation))
    direction = np.array(
        [
            math.cos(elevation) * math.cos(azimuth),
            math.cos(elevation) * math.sin(azimuth),
            math.sin(elevation),
        ]
    )
    # A share drawn once, so that a brighter sun comes with a brighter sky.
    share = random.uniform()
    sky = np.array([preset.horizon, preset.zenith]) * random.uniform(0.93, 1.05)
    return SceneLight(
        name=name,
        sun_direction=direction,
        sun=_within(preset.sun, share),
        ambient=_within(preset.ambient, 0.7 * share + 0.3 * random.uniform()),
        tint=_tinted(preset.tint, random),
        fog_visibility=_fog(preset.fog_visibility, random),
        exposure=1e-3 * random.uniform(*preset.exposure_ms),
        noise=random.uniform(*preset.noise),
        sky=np.clip(sky, 0.0, 255.0),
    )


def _within(limits: Range, share: float) -> float:
    return limits[0] + share * (limits[1] - limits[0])


def _tinted(tint: Colour, random: np.random.Generator) -> Colour:
    blue, green, red = (value * random.uniform(0.97, 1.03) for value in tint)
    return blue, green, red


def _fog(limits: Range, random: np.random.Generator) -> float:
    share = random.uniform()
    if math.isinf(limits[0]):
        return math.inf
    return math.exp(_within((math.log(limits[0]), math.log(limits[1])), share))


# A camera at its most sensitive in a night without moon or lamps: grey levels are noise.
_UNLIT, _AMPLIFIED, _HAZE = 0.002, 6.0, 1000.0
# How high above the horizon what dazzles is, rad: the sun, or by night what shines on the ground.
_LOW_SUN, _HEADLAMP = (0.09, 0.2), (0.06, 0.1)


def hard_light(light: SceneLight, hard: Hardships, ahead: FloatArray, seed: int) -> SceneLight:
    """Return a light with the fog, darkness or glare of a hard flight.

    :param ahead: (2,) m, from the drone towards what it looks at
    """
    if math.isfinite(hard.fog):
        light = replace(
            light, fog_visibility=hard.fog, sun=min(light.sun, 0.1), sky=light.sky[[0, 0]]
        )
    if hard.unlit:  # haze hides the clouds, and what little is left is amplified
        return replace(
            light, name='unlit', sun=0.0, ambient=_UNLIT, sky=np.ones((2, 3)),
            fog_visibility=min(light.fog_visibility, _HAZE), noise=max(light.noise, _AMPLIFIED),
        )  # fmt: skip
    if not hard.lens.glare:
        return light
    random = generator(seed, SeedStream.LENS, 1)
    bearing = math.atan2(ahead[1], ahead[0]) + random.uniform(-0.45, 0.45)
    high = random.uniform(*(_HEADLAMP if light.name in ('night', 'lamps') else _LOW_SUN))
    flat = math.cos(high)
    towards = np.array([flat * math.cos(bearing), flat * math.sin(bearing), math.sin(high)])
    return replace(light, sun_direction=towards)


# Lamps of sodium and warm white, BGR.
LAMP_COLOUR = np.array([0.55, 0.82, 1.08])
_LAMP_PEAK = 0.75
# At the meteorological visibility 5 % of a contrast is left (Koschmieder's law).
_KOSCHMIEDER = -math.log(0.05)
# Clear air still has haze enough to pale what is a kilometre away.
_CLEAR = 1800.0


def level_ground_light(light: SceneLight) -> tuple[FloatArray, FloatArray]:
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


def air_colour(light: SceneLight) -> FloatArray:
    """Return the BGR grey levels (3,) that things fade to with distance."""
    return np.asarray(light.sky[0], np.float64)


def extinction(light: SceneLight) -> float:
    """Return the share of light lost per metre of air (1/m)."""
    return _KOSCHMIEDER / min(light.fog_visibility, _CLEAR)


def clearness(light: SceneLight, distance: float) -> float:
    """Return the share (0..1) of light that comes through ``distance`` m of air."""
    return math.exp(-extinction(light) * distance)
