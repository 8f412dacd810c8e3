"""What `mmedge lab evaluate` does: every policy on the same flights, in one honest report."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import (
    WORK,
    JobsOption,
    argument,
    existing_file,
    flag,
    option,
)

# Panels of help.
COMPARED, FLIGHTS, KEPT = 'What is compared', 'Flights', 'Kept figures'

SIMULATED = 'simulated'
_BUNDLE = 'flight_people'
_LIMITS, _SHARES = '50ms,100ms', '100,64,50'
# Without a set: how many flights are simulated, and how long they are, s.
_FULL, _QUICK = (12, 10.0), (4, 6.0)
_QUICK_LIMITS, _QUICK_SHARES = '50ms,100ms', '100,50'


def evaluate(
    sets: Annotated[
        list[Path] | None,
        argument(
            '[SET]...',
            'sets: folders with one folder per flight with ground truth; none: a '
            'small one is simulated first',
            exists=True,
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    bundle: Annotated[
        str, option('--bundle', 'BUNDLE', 'bundle folder, or the name of a bundle')
    ] = _BUNDLE,
    beside: Annotated[
        str,
        option('--beside', 'BUNDLE', 'another bundle: ours with it on the same flights', COMPARED),
    ] = '',
    policies: Annotated[
        str, option('--policies', 'NAME,...', 'only these, e.g. ours,blocking \\[all]', COMPARED)
    ] = '',
    protocols: Annotated[
        str,
        option(
            '--protocols',
            'NAME,...',
            'sample: each window alone and unloaded; stream: overlapping, backlog carried '
            '\\[both]',
            COMPARED,
        ),
    ] = '',
    limits: Annotated[
        str,
        option(
            '--limits',
            'MS,...',
            'latency limits, the first is the headline’s \\[50ms,100ms]',
            COMPARED,
        ),
    ] = '',
    shares: Annotated[
        str,
        option(
            '--shares',
            'PERCENT,...',
            'percent of the processor, the first is the headline’s \\[100,64,50; quick: 100,50]',
            COMPARED,
        ),
    ] = '',
    profile: Annotated[
        Path | None,
        existing_file(
            '--profile',
            'service times from a device profile \\[a board that is stated, 8, 17 and 30 ms '
            'per picture]',
            COMPARED,
        ),
    ] = None,
    rivals: Annotated[
        Path | None,
        option(
            '--rivals',
            'FOLDER',
            'trained rivals, as `mmedge lab train rivals` makes them \\[those of the bundle]',
            COMPARED,
            exists=True,
            file_okay=False,
        ),
    ] = None,
    results: Annotated[
        list[Path] | None,
        option(
            '--results',
            'REPORT',
            'what gate, ablations, predictor or live latency were measured to be: report.json of '
            'their training, or its folder, or latency.json; repeatable \\[those of the bundle]',
            COMPARED,
            exists=True,
            show_default=False,
        ),
    ] = None,
    most: Annotated[
        int, option('--flights', 'N', 'only so many, spread over the sets; 0: all', FLIGHTS, min=0)
    ] = 0,
    seconds: Annotated[
        float | None,
        option(
            '--seconds', 'S', 'length of flights simulated here, s', FLIGHTS, min=2.0, max=60.0
        ),
    ] = None,
    seeds: Annotated[
        int,
        option(
            '--seeds',
            'N',
            'flights of each scenario simulated here, by seed',
            FLIGHTS,
            min=1,
            max=20,
        ),
    ] = 1,
    jobs: JobsOption = 2,
    quick: Annotated[
        bool, flag('--quick', 'few short flights and settings: ten minutes on two cores')
    ] = False,
    memory: Annotated[
        bool,
        flag(
            '--memory',
            'how well flight memories find what flights saw, into FOLDER/memory; half a minute of '
            'one core for each flight',
        ),
    ] = False,
    timing: Annotated[
        bool,
        flag(
            '--timing/--no-timing', 'also time optimiser, gate and networks on this machine', WORK
        ),
    ] = True,
    against: Annotated[
        Path | None,
        existing_file(
            '--against',
            'kept figures to compare with; what moved is shown, and ends with code 1',
            KEPT,
        ),
    ] = None,
    store: Annotated[
        Path | None,
        option('--store', 'FILE', 'keep the figures for --against', KEPT, dir_okay=False),
    ] = None,
    out: Annotated[Path, option('--out', 'FOLDER', 'folder of the report')] = Path('out/evaluate'),
) -> None:
    """Compare ours with every rival on the same flights and models, and judge the promises.

    Results are kept case by case: a run that is cut short goes on where it was, with the same
    result in the end.
    """
    options = Options(
        sets=tuple(sets or ()),
        bundle=bundle,
        policies=policies,
        protocols=protocols,
        limits=limits or (_QUICK_LIMITS if quick else _LIMITS),
        shares=shares or (_QUICK_SHARES if quick else _SHARES),
        profile=profile,
        flights=most,
        seconds=seconds,
        quick=quick,
        rivals=rivals,
        seeds=seeds,
        results=tuple(results or ()),
        beside=beside,
    )
    if memory:
        _refuse_others('--memory', options, against or store)
        with plain_errors():
            typer.echo(_judge_memory(options, Work(out, jobs, timing)))
        return
    with plain_errors():
        moved = _evaluate(options, Work(out, jobs, timing), against, store)
    typer.echo(out / 'report.html')
    if moved:
        raise typer.Exit(1)


class Options(NamedTuple):
    """What is evaluated: all that figures depend on."""

    sets: tuple[Path, ...]
    bundle: str
    policies: str
    protocols: str
    limits: str
    shares: str
    profile: Path | None
    flights: int
    seconds: float | None
    quick: bool
    rivals: Path | None = None
    seeds: int = 1
    results: tuple[Path, ...] = ()
    beside: str = ''

    @property
    def command(self) -> str:
        """The command that evaluates this again."""
        usual = (_QUICK_LIMITS, _QUICK_SHARES) if self.quick else (_LIMITS, _SHARES)
        words = ['mmedge', 'evaluate', *map(str, self.sets)]
        ordinary = {
            'bundle': _BUNDLE,
            'beside': '',
            'policies': '',
            'protocols': '',
            'limits': usual[0],
            'shares': usual[1],
            'profile': None,
            'rivals': None,
            'flights': 0,
            'seconds': None,
            'seeds': 1,
        }
        for name, usual_value in ordinary.items():
            value = getattr(self, name)
            if value != usual_value:
                words += [f'--{name}', str(value)]
        for path in self.results:
            words += ['--results', str(path)]
        return shlex.join([*words, *(['--quick'] if self.quick else [])])

    @property
    def is_about_policies(self) -> bool:
        """Whether anything was said of what only policies have."""
        shares = (_LIMITS, _SHARES), (_QUICK_LIMITS, _QUICK_SHARES)
        said = (
            self.beside,
            self.policies,
            self.protocols,
            self.profile,
            self.rivals,
            self.results,
        )
        return any(said) or (self.limits, self.shares) not in shares

    @property
    def simulated(self) -> tuple[int, float]:
        """How many flights are simulated where no set is named, and how long they are, s."""
        count, seconds = _QUICK if self.quick else _FULL
        return min(self.flights or count, count), self.seconds or seconds


class Work(NamedTuple):
    """Where results go, and how the work is spread."""

    out: Path
    jobs: int
    timing: bool


def _evaluate(options: Options, work: Work, against: Path | None, store: Path | None) -> bool:
    """Evaluate; returns whether a kept figure moved too far."""
    from mmedge_lab.judging import EvaluationError
    from mmedge_lab.policies.settings import STATED
    from mmedge_lab.policies.trained_rivals import bundle_rivals, read_rivals
    from mmedge_lab.rivals.comparison.plan import plan_comparison, policies_for
    from mmedge_lab.rivals.comparison.result_files import bundle_results, read_results
    from mmedge_lab.rivals.comparison.run import ComparisonRequest, compare
    from mmedge_lab.rivals.comparison.sample_flights import (
        core_seconds,
        expected,
        flight_seconds,
        in_words,
    )
    from mmedge_lab.rivals.comparison.task import run_case
    from mmedge_lab.rivals.mmedge.contention_bench import tables_folder
    from mmedge_ros.clock import SystemClock
    from mmedge_ros.data_types import NS_PER_S
    from mmedge_ros.encoding.bundle.default_model import default_detector
    from mmedge_ros.encoding.bundle.model_bundle import load_bundle
    from mmedge_ros.records.device_profile import read_profile
    from mmedge_ros.report.report_files import require_writable

    clock = SystemClock()
    begun_ns = clock.monotonic_ns()
    if options.sets and options.seeds > 1:
        raise EvaluationError('--seeds is for flights simulated here; leave it out beside sets')
    folder = default_detector(options.bundle)
    has_fusion = load_bundle(folder).has_fusion
    results = bundle_results(folder) | read_results(options.results)
    rivals = read_rivals(options.rivals, folder) if options.rivals else bundle_rivals(folder)
    known, without = policies_for(rivals.plugins, has_fusion, options.policies)
    plan = plan_comparison(
        known, options.policies, options.protocols, options.limits, options.shares
    )
    profile = STATED if options.profile is None else read_profile(options.profile)
    require_writable(work.out)
    say(f'{len(plan.policies)} policies, {len(plan.cases)} cases of each flight')
    cost = partial(core_seconds, cases=len(plan.cases), has_networks=has_fusion)
    flights = _flights(options, work, cost)
    request = ComparisonRequest(
        bundle=folder,
        sets=tuple(path.name for path in options.sets) or (SIMULATED,),
        flights=flights,
        plan=plan,
        run=partial(run_case, rivals.plugins),
        profile=profile,
        out=work.out,
        jobs=work.jobs,
        timing=work.timing,
        plugins=rivals.digest,
        without=tuple(without) if not options.policies else (),
        command=options.command,
        tables=tables_folder(),
        results=results,
        beside=default_detector(options.beside) if options.beside else None,
    )
    seconds = flight_seconds([path for _, path in flights])

    def announce(pending: int, whole: int) -> None:
        share = pending / whole if whole else 0.0
        words = expected(share * cost(seconds), work.jobs)
        say(f'{pending} of {whole} cases are to be run: about {words}')

    with StatusLine(f'evaluating {folder.name}') as line:
        report = compare(
            request,
            lambda share, whole: line.advance(share, f'{whole} of {len(flights)} flights'),
            announce,
        )
    _say_verdicts(report)
    say(f'all in all this took {in_words((clock.monotonic_ns() - begun_ns) / NS_PER_S)}')
    return _fails_regression(report, against, store)


def _refuse_others(hint: str, options: Options, others: object) -> None:
    """Refuse what is about policies beside a question that judges none."""
    if options.is_about_policies or others:
        raise typer.BadParameter(
            'judges no policies: beside sets, only --bundle, --out, what flights and jobs there '
            'are, --profile with --questions go with it',
            param_hint=hint,
        )


def _replayed_flights(
    options: Options, work: Work, seconds_each: float
) -> tuple[tuple[str, Path], ...]:
    """Return the flights, and say what replaying them takes: seconds of a core for each."""
    from mmedge_lab.rivals.comparison.sample_flights import core_seconds

    def cost(seconds: float, *, simulated: bool = False) -> float:
        made = core_seconds(seconds, 0, simulated=simulated)
        return made + seconds_each * seconds / _FULL[1]

    flights = _flights(options, work, cost)
    say(f'{len(flights)} flights are replayed, about {seconds_each:g} s of a core each')
    return flights


def _judge_memory(options: Options, work: Work) -> Path:
    """Judge flight memories; returns where the report is."""
    from mmedge_lab.commands.evaluate_memory import FOLDER, SECONDS_EACH, judge_memory

    flights = _replayed_flights(options, work, SECONDS_EACH)
    return judge_memory(options.bundle, flights, work.out / FOLDER, work.jobs)


def _fails_regression(report: dict[str, Any], against: Path | None, store: Path | None) -> bool:
    """Compare with kept figures and keep new ones; returns whether one changed too far."""
    from mmedge_lab.rivals.comparison.regression import change_table, changes, write_kept

    compared = [] if against is None else changes(report, against)
    if store is not None:
        write_kept(report, store)
        say(f'figures: {store}')
    moved = [change for change in compared if not change.within]
    if against is not None:
        say(f'{len(moved)} of {len(compared)} kept figures moved by more than they may')
    if moved:
        typer.echo(change_table(moved))
    return bool(moved)


def _flights(
    options: Options, work: Work, cost: Callable[..., float]
) -> tuple[tuple[str, Path], ...]:
    """Return the flights by name; without a set they are simulated, or kept from before."""
    from mmedge_lab.rivals.comparison.run import named_flights
    from mmedge_lab.training.flight_pictures import flights_in

    if not options.sets:
        return _simulated(options, work, cost)
    flights = named_flights([(folder.name, flights_in(folder)) for folder in options.sets])
    most = options.flights
    if not most or most >= len(flights):
        return flights
    return tuple(flights[number * len(flights) // most] for number in range(most))


def _simulated(
    options: Options, work: Work, cost: Callable[..., float]
) -> tuple[tuple[str, Path], ...]:
    from mmedge_lab.rivals.comparison.sample_flights import expected, sample_flights
    from mmedge_lab.simulation.flight_set import simulate_set

    count, seconds = options.simulated
    planned = sample_flights(count, seconds, options.seeds)
    words = expected(cost(len(planned) * seconds, simulated=True), work.jobs)
    say(f'{len(planned)} flights of {seconds:g} s are simulated first; all in all about {words}')
    with StatusLine('simulating') as line:
        made = simulate_set(
            work.out / f'{SIMULATED}_{seconds:g}s',
            planned,
            work.jobs,
            lambda done: line.advance(done.share, f'{done.whole} of {done.flights} flights'),
        )
    return tuple((path.name, path) for path in made)


def _say_verdicts(report: dict[str, Any]) -> None:
    for problem in report['problems']:
        say(f'note: {problem}')
    for verdict in report['verdicts']:
        say(f'{verdict["verdict"]}: {verdict["target"]}: {verdict["found"]}')
