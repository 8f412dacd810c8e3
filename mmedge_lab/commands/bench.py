"""What `mmedge lab bench optimizer` and `contention` do, and the group of all benches."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmedge_lab.commands.bench_memory import memory
from mmedge_lab.commands.bench_run import add_benches
from mmedge_ros.commands.command_group import CommandGroup
from mmedge_ros.commands.options import flag, latency_limits, one_latency_limit, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

if TYPE_CHECKING:
    from rich.table import Table

bench_app = CommandGroup(
    no_args_is_help=True,
    help='Measure parts of the system on tables, or live: figures that can be repeated.',
)
bench_app.command()(memory)
add_benches(bench_app)

_LIMITS = '60,80,120,140,160'
_LONGEST_MS = 1e8
_MOST_DECISIONS = 100_000

AccuracyOption = Annotated[
    Path, option('--accuracy', 'FILE', 'table of percent per configuration, and per class if any')
]
JsonOption = Annotated[bool, flag('--json', 'figures as JSON on standard output')]


@bench_app.command()
def optimizer(
    accuracy: AccuracyOption,
    latency: Annotated[
        list[Path], option('--latency', 'FILE', 'table of ms per configuration, repeatable')
    ],
    limits: Annotated[
        list[str] | None,
        option('--limits', 'MS,...', 'latency limits \\[60,80,120,140,160], repeatable'),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the optimiser's answers with exhaustive search, and time it."""
    seconds = latency_limits(','.join(limits or [_LIMITS]), 0.0, _LONGEST_MS)
    with _plain_errors():
        from mmedge_lab.rivals.mmedge.optimizer_bench import run_optimizer
        from mmedge_lab.rivals.mmedge.published_tables import read_tables

        report = run_optimizer(read_tables(accuracy, latency), seconds)
    if as_json:
        _print_json(report)
        return
    for table in report['tables']:
        print_parts(_optimizer_table(table), _sweep_line(table))
    print_parts(_times_table(report))


@bench_app.command()
def contention(
    accuracy: AccuracyOption,
    phases: Annotated[
        str,
        option('--phases', 'FILE,...', 'latency tables that become true in turn: L1.json,L2.json'),
    ],
    limits: Annotated[str, option('--limits', 'MS', 'latency limit, such as 120ms; one')],
    decisions: Annotated[
        int, option('--decisions', 'N', 'in each phase', min=1, max=_MOST_DECISIONS)
    ],
    noise: Annotated[
        float, option('--noise', 'SHARE', 'scatter of latencies, 0.15 = 15 %', min=0.0, max=1.0)
    ] = 0.0,
    outliers: Annotated[
        float, option('--outliers', 'SHARE', 'share of far too long ones', min=0.0, max=1.0)
    ] = 0.0,
    seed: Annotated[int, option('--seed', 'N', 'of noise and outliers', min=0)] = 0,
    as_json: JsonOption = False,
) -> None:
    """Fly through changing latencies knowing only the first table and what was measured."""
    seconds = one_latency_limit(limits, 0.0, _LONGEST_MS)
    paths = [Path(name) for name in phases.split(',') if name.strip()]
    if not paths:
        raise typer.BadParameter('name at least one latency table', param_hint='--phases')
    if len(paths) * decisions > _MOST_DECISIONS:
        raise typer.BadParameter(
            f'{len(paths)} phases of {decisions} are too many; {_MOST_DECISIONS} in all'
        )
    with _plain_errors():
        from mmedge_lab.rivals.mmedge.contention_bench import ContentionSettings, run_contention
        from mmedge_lab.rivals.mmedge.published_tables import read_tables

        tables = read_tables(accuracy, paths)
        settings = ContentionSettings(seconds, decisions, noise, outliers, seed)
        report = run_contention(tables, paths, settings)
    if as_json:
        _print_json(report)
        return
    print_parts(
        _contention_table('the configuration loop that flies', report['phases']),
        _contention_table('a static table', report['static_table']['phases']),
        _factors_line(report),
    )


@contextmanager
def _plain_errors() -> Iterator[None]:
    # Times are those of one thread; small products are not worth waking another.
    for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'):
        os.environ.setdefault(name, '1')
    from mmedge_ros.configuration import ConfigurationError

    try:
        yield
    except ConfigurationError as err:
        from mmedge_ros.commands.errors import stop

        stop(str(err))


def _print_json(report: dict[str, Any]) -> None:
    typer.echo(json.dumps(report, indent=2, allow_nan=False))


def _optimizer_table(report: dict[str, Any]) -> Table:
    table = new_table(f'\n{report["latency"]}', 'limit ms', 'configuration', '%', 'ms', 'regret')
    for answer in report['limits']:
        add_row(
            table,
            f'{answer["limit_ms"]:g}',
            ' '.join(answer['configuration']),
            f'{answer["accuracy"]:.2f}',
            f'{answer["latency_ms"]:.1f}' + ('' if answer['feasible'] else ' (over)'),
            answer['regret'],
        )
    return table


def _sweep_line(report: dict[str, Any]) -> str:
    sweep = report['sweep']
    return (
        f'{sweep["values"]} limits from {sweep["from_ms"]:.0f} to {sweep["to_ms"]:.0f} ms: '
        f'largest regret {sweep["largest_regret"]:g}, {sweep["infeasible"]} infeasible, '
        f'{sweep["wrongly_flagged"]} flagged wrongly'
    )


def _times_table(report: dict[str, Any]) -> Table:
    table = new_table(
        '\nmicroseconds to a decision: p50 by the clock (p95 of processor time)',
        'configurations',
        'calibrate a unit',
        'quantiles and search',
        'search alone',
        'equal to exhaustive',
    )
    for size, times in report['decision_us'].items():
        cells = [
            f'{times[name]["p50"]:g} ({times[name]["processor_p95"]:g})'
            for name in ('unit', 'fresh', 'search')
        ]
        add_row(table, size, *cells, 'yes' if times['equal_to_exhaustive'] else 'NO')
    return table


def _factors_line(report: dict[str, Any]) -> str:
    factors = report['from_factors']
    explained = ', '.join(f'{share:.2f}' for share in factors['r2'])
    return (
        f'\nunit times from {factors["numbers"]} numbers instead of {report["configurations"]}; '
        f'R2 by phase {explained}'
    )


def _contention_table(title: str, phases: list[dict[str, Any]]) -> Table:
    table = new_table(
        f'\n{title}',
        'phase',
        'late',
        'outliers',
        'changes',
        'best %',
        '% at end',
        'regret at end',
        'mean regret',
    )
    for phase in phases:
        add_row(
            table,
            Path(phase['latency']).stem,
            phase['late'],
            phase['outliers'],
            phase['changes'],
            phase['best_accuracy'],
            phase['accuracy_at_end'],
            phase['regret_at_end'],
            phase['regret_mean'],
        )
    return table
