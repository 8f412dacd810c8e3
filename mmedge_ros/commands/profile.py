"""What `mmedge profile` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmedge_ros.commands.display import StatusLine, console, say
from mmedge_ros.commands.laboratory import REMEDY, offered
from mmedge_ros.commands.options import argument, option

if TYPE_CHECKING:
    from mmedge_ros.adaptation.profiling import ProfilePhase
    from mmedge_ros.encoding.bricks import BrickCost

_LEAST_PERCENT = 5.0


def profile(
    bundle: Annotated[
        str,
        argument(
            '[DETECTOR]', 'bundle folder, weights, or the name of a bundle \\[what fits best]'
        ),
    ] = '',
    bag: Annotated[
        Path | None, option('--bag', 'BAG', 'recording to fly \\[a simulated flight]', exists=True)
    ] = None,
    out: Annotated[Path, option('--out', 'FILE', 'the profile to write', dir_okay=False)] = Path(
        'out/profile.yaml'
    ),
    shares: Annotated[
        str, option('--shares', 'PERCENT,...', 'shares of the machine to measure with, in percent')
    ] = '100,64,50',
    seconds: Annotated[
        float, option('--seconds', 'S', 'how long for each, at least', min=2.0, max=600.0)
    ] = 5.0,
    longest: Annotated[
        float,
        option(
            '--longest',
            'S',
            'how long for each at most, on a machine that takes its time',
            min=2.0,
            max=3600.0,
        ),
    ] = 60.0,
    checks: Annotated[
        int,
        option('--checks', 'N', 'whole configurations to compare predictions with', min=0, max=81),
    ] = 3,
) -> None:
    """Measure how long everything takes on this machine, all of it at work.

    The profile serves mmedge replay --profile, and up or replay --optimise.
    """
    # Everything is compared with all of the machine.
    percents = list(dict.fromkeys([100.0, *percents_of(shares, '--shares')]))
    from mmedge_ros.commands.errors import plain_errors

    with plain_errors():
        _run(bundle, bag, out, percents, (seconds, max(seconds, longest)), checks)


def percents_of(text: str, option: str) -> list[float]:
    """Read shares of the machine, in percent.

    :raises BadParameter: for anything else, naming the option
    """
    try:
        percents = [float(part) for part in text.split(',')]
    except ValueError:
        percents = []
    if not percents or not all(_LEAST_PERCENT <= p <= 100.0 for p in percents):
        raise typer.BadParameter(
            f'{text!r} does not read PERCENT,PERCENT,... of {_LEAST_PERCENT:g} to 100',
            param_hint=option,
        )
    return percents


def _run(
    bundle: str,
    bag: Path | None,
    out: Path,
    percents: list[float],
    duration: tuple[float, float],
    checks: int,
) -> None:
    from mmedge_ros.adaptation.bundle_configurations import bundle_space
    from mmedge_ros.adaptation.optimizer_setup import ConfigurationOptimizerParameters
    from mmedge_ros.adaptation.profiling import device_profile, profile_phases
    from mmedge_ros.core.data_types import CAMERA, RADAR
    from mmedge_ros.core.device_profile import write_profile
    from mmedge_ros.encoding.bricks import costs_as_plain
    from mmedge_ros.encoding.bundle.model_bundle import model_levels
    from mmedge_ros.monitoring.machine import machine_description
    from mmedge_ros.replay.offline_session import replay_detector
    from mmedge_ros.replay.recording import Recording
    from mmedge_ros.ros.sessions.profile_session import PhaseDuration, measure

    flight = bag or _flight()
    rules = ConfigurationOptimizerParameters()
    with Recording(flight) as recording:
        model = replay_detector(recording, bundle).resolve()
    rates = {CAMERA: rules.camera_rates, RADAR: rules.radar_rates}
    space = bundle_space(model, rules.modalities, rates, rules.camera_reuse)
    phases = profile_phases(space, percents, checks)
    out.parent.mkdir(parents=True, exist_ok=True)
    bricks = _measured_bricks(model)
    measured = measure(flight, model, space, phases, PhaseDuration(*duration), _show_phase)
    machine = machine_description()
    words = f'{machine["model"] or machine["processor"]}, {machine["cores"]} cores'
    described = f'mmedge profile with {model.name} on {words}'
    defaults = {CAMERA: model_levels(model)[1]}
    made = device_profile(described, measured, space, defaults, machine)
    made = replace(made, details={**made.details, 'bricks': costs_as_plain(bricks)})
    write_profile(made, out)
    check = made.details.get('cross_check')
    if check:
        console.print(
            f'predicted p95 of {len(check["configurations"])} whole configurations: off by '
            f'{100 * check["error"]:.0f} % on average'
        )
    for name, count in made.details.get('measured_rarely', {}).items():
        say(f'{name} was measured {count} times only; its quantiles are rough')
    typer.echo(out)


def _measured_bricks(model: Path) -> list[BrickCost]:
    """Measure every network on every device that this machine may have.

    :raises EncodingError: if the processor cannot run one
    """
    from mmedge_ros.adaptation.brick_measurement import measure_bricks

    bricks = []
    with StatusLine('measuring bricks') as line:
        for found in measure_bricks(model, on_brick=line.advance):
            if isinstance(found, str):
                say(f'not measured: {found}')
            else:
                bricks.append(found)
    return bricks


def _show_phase(share: float, phase: ProfilePhase, lacking: Mapping[str, int]) -> None:
    """Say what is measured next, or what it goes on for."""
    from mmedge_ros.adaptation.profiling import ENOUGH

    words = phase.words()
    if lacking:
        counts = ', '.join(f'{count} of {ENOUGH} {name}' for name, count in lacking.items())
        words = f'{words}: going on, so far {counts}'
    say(f'{100 * share:3.0f} %: {words}')


def _flight() -> Path:
    """Return the demo's flight, kept for the next time."""
    from mmedge_ros.commands.errors import stop

    simulated = offered('demo_flight')
    if simulated is None:
        stop(f'name a recording with --bag; none can be simulated: {REMEDY}')
    with StatusLine('simulating a flight, once') as line:
        flight: Path = simulated(line.advance)
    return flight
