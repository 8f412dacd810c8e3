"""The cases of an evaluation: configurations, and strategies to compare with."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mmedge_lab.judging import EvaluationError
from mmedge_ros.configuration.configuration_space import from_cheapest
from mmedge_ros.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration

RATES: Mapping[str, tuple[float, ...]] = {CAMERA: (10.0, 20.0, 30.0), RADAR: (5.0, 10.0, 20.0)}
REUSE = (1, 2, 3, 6)


class Strategy(NamedTuple):
    """How units become decisions.

    ``modalities`` are those whose units arrive; ``learned``: with the bundle's fusion network,
    where it has one. ``words`` and ``short`` are for people.
    """

    name: str
    short: str
    words: str
    modalities: tuple[str, ...] = (CAMERA, RADAR)
    learned: bool = True


FUSION = Strategy('fusion', 'fusion', 'camera and radar, fused as the bundle says')
DECISION_FUSION = Strategy(
    'decision_fusion',
    'decision fusion',
    "camera and radar, the detector's own boxes fused with radar returns by decision fusion",
    learned=False,
)
CAMERA_ONLY = Strategy(
    'camera_only', 'camera only', 'the same with every radar unit withheld', (CAMERA,)
)
DETECTOR_ONLY = Strategy(
    'detector_only',
    'detector only',
    "no radar unit and no fusion network: the detector's own boxes, tracked",
    (CAMERA,),
    learned=False,
)
RADAR_ONLY = Strategy(
    'radar_only', 'radar only', 'the same with every camera unit withheld', (RADAR,)
)
STRATEGIES = (FUSION, DECISION_FUSION, CAMERA_ONLY, DETECTOR_ONLY, RADAR_ONLY)


class Case(NamedTuple):
    """One thing to judge: a strategy in a configuration."""

    strategy: str
    camera_rate: float
    camera_level: str
    radar_rate: float
    radar_level: str

    @property
    def key(self) -> str:
        """A name for files."""
        return (
            f'{self.strategy}-camera_{self.camera_level}_{self.camera_rate:g}hz'
            f'-radar_{self.radar_level}_{self.radar_rate:g}hz'
        )

    @property
    def configuration(self) -> Configuration:
        """The configuration for encoders."""
        return Configuration(
            1,
            0,
            (
                ModalityConfiguration(CAMERA, self.camera_rate, self.camera_level),
                ModalityConfiguration(RADAR, self.radar_rate, self.radar_level),
            ),
        )


@dataclass(frozen=True)
class CasePlan:
    """Everything to judge: ``cases`` in the order of work, ``full`` the fullest configuration.

    ``levels`` are the levels judged, of each modality, cheapest first.
    """

    full: Case
    cases: tuple[Case, ...]
    strategies: tuple[Strategy, ...]
    levels: Mapping[str, tuple[str, ...]]

    def of(self, strategy: Strategy) -> Case:
        """Return a strategy at the fullest configuration."""
        return self.full._replace(strategy=strategy.name)

    @property
    def grid(self) -> tuple[Case, ...]:
        """The bundle's own strategy in every configuration judged."""
        return tuple(case for case in self.cases if case.strategy == FUSION.name)


def plan_cases(
    known: Mapping[str, Sequence[str]],
    wanted: Sequence[str] = (),
    *,
    every_configuration: bool = True,
    learned_fusion: bool = False,
) -> CasePlan:
    """Plan the cases; all strategies are compared at the highest rates and the last levels.

    :param known: levels of each modality's encoder; none: one model, or none, for every level
    :param wanted: levels to judge; () for all
    :param every_configuration: judge all rates and levels, not only the fullest ones
    :param learned_fusion: whether the bundle has a fusion network
    :raises EvaluationError: for an unknown level
    """
    levels = {m: _levels(known.get(m, ()), wanted) for m in (CAMERA, RADAR)}
    _require_known(known, wanted)
    full = Case(
        FUSION.name, RATES[CAMERA][-1], levels[CAMERA][-1], RATES[RADAR][-1], levels[RADAR][-1]
    )
    strategies = [strategy for strategy in STRATEGIES if strategy.learned or learned_fusion]
    first = [full._replace(strategy=strategy.name) for strategy in strategies]
    others: list[Case] = []
    if every_configuration:
        others = [
            Case(FUSION.name, *values)
            for values in itertools.product(
                RATES[CAMERA], levels[CAMERA], RATES[RADAR], levels[RADAR]
            )
        ]
    return CasePlan(full, tuple(dict.fromkeys([*first, *others])), tuple(strategies), levels)


def strategy_named(name: str) -> Strategy:
    """Return a strategy by its name."""
    return next(strategy for strategy in STRATEGIES if strategy.name == name)


def _levels(known: Sequence[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Levels of a modality in ascending order; one that stands for all where there is one."""
    if not known:
        return ('any',)
    ascending = from_cheapest(known)
    chosen = tuple(level for level in ascending if not wanted or level in wanted)
    return chosen or ascending[-1:]


def _require_known(known: Mapping[str, Sequence[str]], wanted: Sequence[str]) -> None:
    every = list(dict.fromkeys(level for levels in known.values() for level in levels))
    for level in wanted:
        if level not in every:
            if not every:
                raise EvaluationError(
                    f'the bundle has no level {level!r}, and none at all; leave out --levels'
                )
            near = difflib.get_close_matches(level, every, n=1, cutoff=0.0)[0]
            raise EvaluationError(
                f'the bundle has no level {level!r}; the nearest is {near!r}, it has '
                f'{", ".join(every)}'
            )
