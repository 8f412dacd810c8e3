"""What `mmedge profile` does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mmedge_ros.display import console, say

_LEAST_PERCENT = 5.0


def profile(
    bundle: Annotated[
        str,
        typer.Argument(help='bundle folder, weights, or the name of a bundle \\[what fits best]'),
    ] = '',
    bag: Annotated[
        Path | None,
        typer.Option('--bag', exists=True, help='recording to fly \\[a simulated flight]'),
    ] = None,
    out: Annotated[
        Path, typer.Option('--out', dir_okay=False, help='the profile to write')
    ] = Path('out/profile.yaml'),
    limits: Annotated[
        str,
        typer.Option('--limits', help='shares of the machine to measure with, in percent'),
    ] = '100,64,50',
    seconds: Annotated[
        float, typer.Option('--seconds', min=2.0, max=600.0, help='how long for each')
    ] = 5.0,
    checks: Annotated[
        int,
        typer.Option(
            '--checks', min=0, max=81, help='whole configurations to compare predictions with'
        ),
    ] = 3,
) -> None:
    """Measure how long everything takes on this machine, all of it at work.

    The profile serves mmedge replay --profile, and up or replay --optimise.
    """
    percents = _percents(limits)
    from mmedge_ros.replay_command import plain_errors

    with plain_errors():
        _run(bundle, bag, out, percents, seconds, checks)


def _percents(text: str) -> list[float]:
    try:
        percents = [float(part) for part in text.split(',')]
    except ValueError:
        percents = []
    if not percents or not all(_LEAST_PERCENT <= p <= 100.0 for p in percents):
        raise typer.BadParameter(
            f'{text!r} does not read PERCENT,PERCENT,... of {_LEAST_PERCENT:g} to 100',
            param_hint='--limits',
        )
    # Everything is compared with all of the machine.
    return list(dict.fromkeys([100.0, *percents]))


def _run(
    bundle: str, bag: Path | None, out: Path, percents: list[float], seconds: float, checks: int
) -> None:
    from mmedge_ros.configuration.bundle_space import bundle_space
    from mmedge_ros.configuration.profiling import Phase, device_profile, profile_phases
    from mmedge_ros.data_types import CAMERA, RADAR
    from mmedge_ros.encoding.model_bundle import model_levels
    from mmedge_ros.monitoring.machine_description import machine_description
    from mmedge_ros.replay.device_profile import write_profile
    from mmedge_ros.replay.offline_session import replay_detector
    from mmedge_ros.replay.recording import Recording
    from mmedge_ros.ros.optimizer_setup import ConfigurationOptimizerParameters
    from mmedge_ros.ros.profile_session import measure

    rules = ConfigurationOptimizerParameters()
    flight = bag or _flight()
    with Recording(flight) as recording:
        model = replay_detector(recording, bundle).resolve()
    rates = {CAMERA: rules.camera_rates, RADAR: rules.radar_rates}
    space = bundle_space(model, rules.modalities, rates)
    phases = profile_phases(space, percents, checks)
    out.parent.mkdir(parents=True, exist_ok=True)

    def show(share: float, phase: Phase) -> None:
        say(f'{100 * share:3.0f} %: {phase.words()}')

    measured = measure(flight, model, space, phases, seconds, show)
    machine = machine_description()
    words = f'{machine["model"] or machine["processor"]}, {machine["cores"]} cores'
    described = f'mmedge profile with {model.name} on {words}'
    defaults = {CAMERA: model_levels(model)[1]}
    made = device_profile(described, measured, space, defaults, machine)
    write_profile(made, out)
    check = made.details.get('cross_check')
    if check:
        console.print(
            f'predicted p95 of {len(check["configurations"])} whole configurations: off by '
            f'{100 * check["error"]:.0f} % on average'
        )
    typer.echo(out)


def _flight() -> Path:
    """Return the demo's flight, kept for the next time."""
    from mmedge_ros.display import StatusLine
    from mmedge_ros.simulation.demo_flight import cached_demo_flight

    with StatusLine('simulating a flight, once') as line:
        return cached_demo_flight(line.advance)
