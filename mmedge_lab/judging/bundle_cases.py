"""The cases of an evaluation: configurations, and strategies to compare with."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mmedge_lab.judging import EvaluationError
from mmedge_ros.adaptation.configuration_space import from_cheapest
from mmedge_ros.core.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration

RATES: Mapping[str, tuple[float, ...]] = {CAMERA: (10.0, 20.0, 30.0), RADAR: (5.0, 10.0, 20.0)}
REUSE = (1, 2, 3, 6)
# What the only model of a modality is called.
ANY = 'any'


class Strategy(NamedTuple):
    """How units become decisions.

    ``modalities`` are those whose units arrive; ``learned``: with the bundle's fusion network,
    where it has one. ``words`` are for people.
    """

    name: str
    words: str
    modalities: tuple[str, ...] = (CAMERA, RADAR)
    learned: bool = True


FUSION = Strategy('fusion', 'camera and radar, fused as the bundle says')
DECISION_FUSION = Strategy(
    'decision_fusion',
    "camera and radar, the detector's own boxes fused with radar returns by decision fusion",
    learned=False,
)
CAMERA_ONLY = Strategy('camera_only', 'the same with every radar unit withheld', (CAMERA,))
DETECTOR_ONLY = Strategy(
    'detector_only',
    "no radar unit and no fusion network: the detector's own boxes, tracked",
    (CAMERA,),
    learned=False,
)
RADAR_ONLY = Strategy('radar_only', 'the same with every camera unit withheld', (RADAR,))
STRATEGIES = (FUSION, DECISION_FUSION, CAMERA_ONLY, DETECTOR_ONLY, RADAR_ONLY)


def camera_configuration(level: str, rate: float = 0.0, reuse: int = 1) -> Configuration:
    """Return what a camera is configured to, and the radar as it is; 0 Hz is every picture."""
    camera = ModalityConfiguration(CAMERA, rate, level, reuse=reuse)
    return Configuration(1, 0, (camera, ModalityConfiguration(RADAR)))


class Case(NamedTuple):
    """Rates and levels of both sensors."""

    camera_rate: float
    camera_level: str
    radar_rate: float
    radar_level: str

    @property
    def name(self) -> str:
        """As `case_named` reads it."""
        return (
            f'camera {self.camera_level} {self.camera_rate:g} Hz, '
            f'radar {self.radar_level} {self.radar_rate:g} Hz'
        )

    @property
    def configuration(self) -> Configuration:
        """The configuration for encoders."""
        camera = ModalityConfiguration(CAMERA, self.camera_rate, self.camera_level)
        radar = ModalityConfiguration(RADAR, self.radar_rate, self.radar_level)
        return Configuration(1, 0, (camera, radar))


_NAME = re.compile(r'camera (\S+) ([\d.]+) Hz, radar (\S+) ([\d.]+) Hz')


def case_named(name: str) -> Case | None:
    """Return the case of a name; None where it is none."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return Case(float(match[2]), match[1], float(match[4]), match[3])


def plan_cases(known: Mapping[str, Sequence[str]], wanted: Sequence[str] = ()) -> list[Case]:
    """Return all configurations to judge, the one with the highest rates and levels at last.

    :param known: levels of each modality's encoder; none: one model, or none, for every level
    :param wanted: levels to judge; () for all
    :raises EvaluationError: for an unknown level
    """
    levels = {modality: _levels(known.get(modality, ()), wanted) for modality in (CAMERA, RADAR)}
    every = list(dict.fromkeys(level for of in known.values() for level in of))
    for level in wanted:
        if level not in every:
            near = difflib.get_close_matches(level, every, n=1, cutoff=0.0)
            raise EvaluationError(
                f'the bundle has no level {level!r}'
                + (f'; the nearest is {near[0]!r}, it has {", ".join(every)}' if near else '')
            )
    return [
        Case(*values)
        for values in itertools.product(
            *(RATES[CAMERA], levels[CAMERA], RATES[RADAR], levels[RADAR])
        )
    ]


def _levels(known: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Levels of a modality in ascending order; one that stands for all where there is one."""
    if not known:
        return (ANY,)
    ascending = from_cheapest(known)
    chosen = tuple(level for level in ascending if not wanted or level in wanted)
    return chosen or ascending[-1:]
