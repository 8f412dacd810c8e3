"""What an optimiser of configurations decides with: its parameters, and the loop they describe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.bundle_configurations import (
    bundle_defaults,
    bundle_levels,
    bundle_predictor,
    bundle_space,
    bundle_unit_times,
)
from mmedge_ros.adaptation.configuration_loop import (
    ConfigurationLoop,
    ConfigurationLoopParameters,
)
from mmedge_ros.adaptation.fixed_configuration import FixedConfiguration
from mmedge_ros.adaptation.placement import Placement
from mmedge_ros.adaptation.unit_time_profile import unit_times_from_profile
from mmedge_ros.core.data_types import CAMERA, MOST_REUSE, RADAR
from mmedge_ros.core.device_profile import read_profile
from mmedge_ros.core.parameter import group, parameter
from mmedge_ros.encoding.bricks import costs_from_plain
from mmedge_ros.encoding.bundle.default_model import default_detector


@dataclass(frozen=True)
class ConfigurationOptimizerParameters:
    """What can be chosen, and by which rules."""

    optimise: bool = parameter(
        True,
        'choose rates and levels; otherwise all stays as set up, but within the bounds that '
        'battery, heat and load set',
    )
    rate: float = parameter(10.0, 'how often it is decided', 'Hz', 0.5, 100.0)
    modalities: tuple[str, ...] = parameter(
        (CAMERA, RADAR), 'sensors whose rates and levels are chosen: camera, radar'
    )
    camera_rates: tuple[float, ...] = parameter(
        (10.0, 20.0, 30.0),
        'rates of the camera to choose from, the lowest first',
        'Hz',
        0.1,
        1000.0,
    )
    radar_rates: tuple[float, ...] = parameter(
        (5.0, 10.0, 20.0), 'rates of the radar to choose from, the lowest first', 'Hz', 0.1, 1000.0
    )
    camera_reuse: tuple[int, ...] = parameter(
        (1, 2, 3, 6),
        'how sparsely pictures may be encoded: 2 encodes about every 2nd one and follows what was '
        'detected in the others; 1 encodes every one',
        minimum=1,
        maximum=MOST_REUSE,
    )
    detector: str = parameter(
        '', 'the model whose levels are chosen; that of the encoders, see there'
    )
    simulated: bool = parameter(False, 'the pictures come from the simulator, as at the encoders')
    profile: str = parameter(
        '',
        'device profile measured by mmedge profile; without one unit times are learned in flight, '
        'and levels that have not run are guessed',
    )
    adaptation: ConfigurationLoopParameters = group(ConfigurationLoopParameters)


@dataclass(frozen=True)
class OptimizerSetup:
    """``notes`` name what is missing, ``source`` where accuracies come from."""

    loop: ConfigurationLoop | FixedConfiguration
    notes: tuple[str, ...]
    source: str
    size: int


def optimizer_setup(p: ConfigurationOptimizerParameters) -> OptimizerSetup:
    """Make the loop that the parameters describe.

    :raises EncodingError: if the model cannot be read
    :raises ReplayError: if the profile cannot be read
    :raises ConfigurationError: if profile, accuracies or rates do not suit the model
    """
    rates = {CAMERA: p.camera_rates, RADAR: p.radar_rates}
    model = default_detector(p.detector, p.simulated)
    profile = read_profile(Path(p.profile)) if p.profile else None
    costs = costs_from_plain(profile.details.get('bricks')) if profile else []
    placement = Placement(costs, bundle_defaults(model))
    if not p.optimise:
        levels = {modality: bundle_levels(model, modality) for modality in p.modalities}
        fixed = FixedConfiguration(levels, bundle_defaults(model), p.adaptation, placement)
        return OptimizerSetup(fixed, (), 'none: it does not optimise', 0)
    for modality in p.modalities:
        if modality not in rates:
            raise ConfigurationError(
                f'modalities: there are no rates for {modality!r}; choose from {", ".join(rates)}'
            )
    space = bundle_space(model, p.modalities, rates, p.camera_reuse)
    notes = []
    if profile is not None:
        times = unit_times_from_profile(profile, space)
    else:
        times, measured = bundle_unit_times(model, space)
        begin = 'begin with those in the bundle' if measured else 'are guessed until measured'
        notes.append(f'no device profile: unit times {begin} (mmedge profile)')
    accuracies = bundle_predictor(model, space)
    if accuracies.note:
        notes.append(accuracies.note)
    loop = ConfigurationLoop(space, times, accuracies.predictor, p.adaptation, placement)
    return OptimizerSetup(loop, tuple(notes), accuracies.source, len(space))
