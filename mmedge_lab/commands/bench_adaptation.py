"""What `mmedge lab bench adaptation` does."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmedge_ros.commands.display import say
from mmedge_ros.commands.options import (
    DetectorOption,
    existing_file,
    flag,
    one_latency_limit,
    option,
)

if TYPE_CHECKING:
    from rich.table import Table

    from mmedge_ros.configuration.configuration_space import ConfigurationSpace
    from mmedge_ros.records.device_profile import DeviceProfile

REPORT = 'adaptation.json'
# How much of the flight is simulated at most; it is flown over and over (s).
_LONGEST_FLIGHT = 60.0
_SHORTEST_PHASE = 4.0
_STRIDE = 0.1
# How long each level is measured at least and at most, per share of the machine (s).
_PROFILE_SECONDS = (4.0, 60.0)
_PROFILE = 'profile.yaml'


def adaptation(
    out: Annotated[Path, option('--out', 'FOLDER', 'folder of report, figure and profile')],
    bag: Annotated[
        Path | None, option('--bag', 'BAG', 'recording to fly \\[one is simulated]', exists=True)
    ] = None,
    detector: DetectorOption = None,
    limits: Annotated[
        str, option('--limits', 'MS', 'latency that decisions have to keep')
    ] = '100ms',
    shares: Annotated[
        str, option('--shares', 'PERCENT,...', 'shares of the machine in turn, in percent')
    ] = '100,50,30,100',
    phase_seconds: Annotated[
        float,
        option(
            '--phase-seconds', 'S', 'how long each share holds', min=_SHORTEST_PHASE, max=3600.0
        ),
    ] = 15.0,
    profile: Annotated[
        Path | None,
        existing_file(
            '--profile', 'of this machine, measured with the same --shares \\[measured first]'
        ),
    ] = None,
    caps: Annotated[
        bool, flag('--caps', 'battery and computer of the flight cap configurations, too')
    ] = False,
    as_json: Annotated[bool, flag('--json', 'figures as JSON on standard output')] = False,
) -> None:
    """Fly live while the processor is taken away in steps, with adaptation and without.

    An oracle gives the steps in which some configuration would be in time. Player, recorder and
    limiter run outside the limit.
    """
    from mmedge_ros.commands.errors import plain_errors
    from mmedge_ros.commands.profile import percents_of

    seconds = one_latency_limit(limits, 5.0, 5000.0)
    percents = percents_of(shares, '--shares')
    with plain_errors():
        report = _run(
            out, bag, str(detector or ''), seconds, percents, phase_seconds, profile, caps
        )
    if as_json:
        typer.echo(json.dumps(report, indent=2, allow_nan=False))
        return
    from mmedge_ros.commands.tables import print_parts

    print_parts(_table(report), _summary(report))
    typer.echo(out / REPORT)


def _run(
    out: Path,
    flight: Path | None,
    detector: str,
    limit: float,
    percents: list[float],
    phase_seconds: float,
    profile_file: Path | None,
    caps: bool,
) -> dict[str, Any]:
    from mmedge_lab.rivals.mmedge.cpu_step_figure import draw_cpu_steps
    from mmedge_lab.rivals.mmedge.cpu_step_flight import CpuStepPlan, fly_cpu_steps
    from mmedge_lab.rivals.mmedge.cpu_step_report import SETTLING, WANTED, flight_figures, verdict
    from mmedge_ros.commands.profile import chosen_space
    from mmedge_ros.monitoring.machine import machine_description
    from mmedge_ros.records.run_record import software_identity

    out.mkdir(parents=True, exist_ok=True)
    bag = flight or simulated_flight(out, phase_seconds * len(percents))
    model, space = chosen_space(bag, detector)
    path = profile_file or out / _PROFILE
    known, oracles = _oracle(bag, model, space, limit, percents, path, profile_file is None)

    def show(run: str, share: float, percent: float) -> None:
        say(f'{run}: {100 * share:3.0f} %, {percent:g} % of the machine')

    flown, runs = {}, {}
    for name, used in (('fixed', None), ('adaptive', path)):
        plan = CpuStepPlan(percents, phase_seconds, limit, used, caps)
        flown[name], record = fly_cpu_steps(bag, model, plan, partial(show, name))
        runs[name] = flight_figures(flown[name], limit, _STRIDE)
    figure = draw_cpu_steps(flown['adaptive'], flown['fixed'], record.states, limit)
    (out / figure.name).write_bytes(figure.png)
    report: dict[str, Any] = {
        'flight': str(bag),
        'limit_ms': round(1e3 * limit, 3),
        'phase_seconds': phase_seconds,
        'settling_s': SETTLING,
        'caps': caps,
        'wanted': WANTED,
        'machine': machine_description(),
        'software': software_identity(str(model)),
        'profile': known.description,
        'cross_check': known.details.get('cross_check'),
        'oracle': oracles,
        'runs': runs,
        'verdict': verdict(runs, oracles),
        'figure': figure.name,
    }
    (out / REPORT).write_text(json.dumps(report, indent=2, allow_nan=False) + '\n')
    return report


def simulated_flight(out: Path, seconds: float) -> Path:
    """Return a flight in the folder of the report, kept for the next time."""
    from dataclasses import replace

    from mmedge_lab.simulation.flight import DEMO_FLIGHT, kept_flight
    from mmedge_ros.commands.display import StatusLine

    wanted = replace(DEMO_FLIGHT, seconds=min(seconds, _LONGEST_FLIGHT))
    with StatusLine('simulating a flight') as line:
        return kept_flight(out / 'flight', wanted, line.advance)


def _oracle(
    bag: Path,
    model: Path,
    space: ConfigurationSpace,
    limit: float,
    percents: list[float],
    path: Path,
    is_to_be_measured: bool,
) -> tuple[DeviceProfile, list[dict[str, Any]]]:
    """Measure what is known of the machine, and which shares of it are enough.

    Fixed configurations flown under each share: the cheapest, and one in the middle.
    """
    from mmedge_lab.rivals.mmedge.cpu_step_report import oracle
    from mmedge_ros.commands.profile import made_profile, show_phase
    from mmedge_ros.configuration.accuracy_predictor import (
        Indicators,
        assumed_accuracy,
        bundle_accuracy,
    )
    from mmedge_ros.configuration.bundle_configurations import manifest_of
    from mmedge_ros.configuration.profiling import Phase, profile_phases
    from mmedge_ros.records.device_profile import read_profile, write_profile
    from mmedge_ros.ros.sessions.profile_session import PhaseDuration, measure

    different = list(dict.fromkeys([100.0, *percents]))
    fixed = [
        Phase(space.parts(index), percent, is_check=True)
        for percent in dict.fromkeys(percents)
        for index in (0, len(space) // 2)
    ]
    levels = profile_phases(space, different, 0) if is_to_be_measured else []
    duration = PhaseDuration(*_PROFILE_SECONDS)
    measured = measure(bag, model, space, [*levels, *fixed], duration, show_phase)
    if is_to_be_measured:
        write_profile(made_profile(model, space, measured), path)
    known = read_profile(path)
    predictor = bundle_accuracy(manifest_of(model), space) or assumed_accuracy(space)
    accuracy = predictor.predict(Indicators())
    return known, oracle(known, space, accuracy.tolist(), measured, limit)


def _table(report: dict[str, Any]) -> Table:
    from mmedge_ros.commands.tables import add_row, new_table

    table = new_table(
        f'\n{report["phase_seconds"]:g} s for each share, limit {report["limit_ms"]:g} ms',
        'share of the machine',
        'feasible',
        'best fixed p95',
        'with: in time',
        'p95',
        'changes',
        'without: in time',
        'p95',
    )
    oracles = {row['percent']: row for row in report['oracle']}
    adaptive, fixed = (report['runs'][name]['phases'] for name in ('adaptive', 'fixed'))
    for with_it, without in zip(adaptive, fixed, strict=True):
        limits = oracles[with_it['percent']]
        best = min((row['p95_ms'] for row in limits['flown']), default=None)
        add_row(
            table,
            f'{with_it["percent"]:g} %',
            'yes' if limits['feasible'] else 'no',
            best,
            _percent(with_it['in_time']),
            with_it['p95_ms'],
            with_it['changes'],
            _percent(without['in_time']),
            without['p95_ms'],
        )
    return table


def _summary(report: dict[str, Any]) -> str:
    shares, run = report['verdict']['in_time'], report['runs']['adaptive']
    return (
        f'in time where feasible, outside the {report["settling_s"]:g} s after a step: '
        f'{_percent(shares["adaptive"])} with adaptation, {_percent(shares["fixed"])} without; '
        f'{run["changes_per_minute"]} changes per minute'
    )


def _percent(share: float | None) -> str:
    return '-' if share is None else f'{100 * share:.1f} %'
