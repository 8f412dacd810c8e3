"""What `mmedge lab bench describing` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmedge_lab.commands.bench_adaptation import simulated_flight
from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.options import (
    DetectorOption,
    argument,
    existing_file,
    one_latency_limit,
    option,
)

if TYPE_CHECKING:
    from mmedge_lab.rivals.mmedge.described_flight import DescribedFlight

REPORT = 'describing.json'
# Rates and levels under which a limit is said to be feasible are flown for so long each (s).
_ORACLE_SECONDS = (6.0, 20.0)
_WAYS = ('no model', 'demand', 'no demand')
_PARAMETERS = 'parameters.yaml'


def describing(
    model: Annotated[Path, argument('GGUF', 'language model', exists=True, dir_okay=False)],
    profile: Annotated[
        Path, existing_file('--profile', 'of this machine, as mmedge profile measures it')
    ],
    out: Annotated[Path, option('--out', 'FOLDER', f'folder of the flight and {REPORT}')] = Path(
        'out/bench-describing'
    ),
    bag: Annotated[
        Path | None, option('--bag', 'BAG', 'recording to fly \\[one is simulated]', exists=True)
    ] = None,
    detector: DetectorOption = None,
    limits: Annotated[
        str, option('--limits', 'MS', 'latency that decisions have to keep without a model')
    ] = '100ms',
    leaves: Annotated[
        float,
        option('--leaves', 'MS', 'what the slowest kind leaves to decisions', min=1, max=5000),
    ] = 50.0,
    total: Annotated[
        float,
        option(
            *('--total-limit', 'S', 'of decision and sentence, in place of --leaves'),
            min=0,
            max=60,
        ),
    ] = 0.0,
    kinds: Annotated[
        str, option('--kinds', 'KIND,...', 'kinds of questions, each flown by itself')
    ] = 'count',
    seconds: Annotated[
        float, option('--seconds', 'S', 'length of the simulated flight', min=20, max=60)
    ] = 45.0,
) -> None:
    """Fly live without a language model, beside one that describes, and with its demand heard.

    An oracle gives the latency limits that some fixed configuration keeps beside the model.
    """
    from mmedge_ros.commands.errors import plain_errors

    usual = one_latency_limit(limits, 5.0, 5000.0)
    wanted = _kinds(kinds)
    with plain_errors():
        out.mkdir(parents=True, exist_ok=True)
        flight = bag or simulated_flight(out, seconds)
        bench = _Bench(out, flight, str(detector or ''), model.resolve(), profile, usual)
        report = bench.run(wanted, total, 1e-3 * leaves)
    (out / REPORT).write_text(json.dumps(report, indent=2, allow_nan=False) + '\n')
    _print(report)
    typer.echo(out / REPORT)


def _kinds(text: str) -> list[str]:
    """Read kinds of questions.

    :raises BadParameter: for one that there is not
    """
    from mmedge_ros.questions.describing import KINDS

    kinds = [part.strip() for part in text.split(',')]
    for kind in kinds:
        if kind not in KINDS:
            known = ', '.join(KINDS)
            raise typer.BadParameter(f'{kind!r}: one of {known}', param_hint='--kinds')
    return kinds


class _Bench:
    def __init__(
        self, out: Path, flight: Path, detector: str, model: Path, profile: Path, usual: float
    ) -> None:
        import yaml

        from mmedge_lab.rivals.mmedge.cpu_step_flight import without_caps

        self._flight, self._detector, self._model = flight, detector, model
        self._profile, self._usual = profile, usual
        self._parameters = out / _PARAMETERS
        content = {
            'fusion': {'ros__parameters': {'pipeline.windows.deadline': usual}},
            'configuration_optimizer': {'ros__parameters': without_caps()},
        }
        self._parameters.write_text(yaml.safe_dump(content))

    def run(self, kinds: list[str], total: float, leaves: float) -> dict[str, Any]:
        """Fly all ways; return the report."""
        from mmedge_lab.rivals.mmedge.described_flight import flight_figures, upper_of
        from mmedge_ros.monitoring.machine import machine_description

        alone = self._least(None)
        least = {kind: self._least(self._describing(kind, 0.0)) for kind in kinds}
        if not total:
            slowest = max(
                upper_of(self._fly(f'{kind}, for its time', self._describing(kind, 0.0)).newest)
                for kind in kinds
            )
            total = round(slowest + leaves, 3)
        rows = []
        for kind, way in [('', _WAYS[0]), *((k, w) for k in kinds for w in _WAYS[1:])]:
            given = self._describing(kind, total if way == 'demand' else 0.0) if kind else None
            flown = self._fly(f'{way} {kind}', given)
            figures = flight_figures(flown, total, self._usual, least.get(kind, alone))
            rows.append({'kind': kind or None, 'way': way, **figures})
        return {
            'flight': str(self._flight),
            'model_mb': round(self._model.stat().st_size / 1e6, 1),
            'limit_ms': round(1e3 * self._usual, 1),
            'total_limit_s': total,
            'least_feasible_ms': {
                k or 'no model': _ms(v) for k, v in {'': alone, **least}.items()
            },
            'machine': machine_description(),
            'rows': rows,
        }

    def _describing(self, kind: str, total: float) -> dict[str, Any]:
        return {
            'model': str(self._model),
            'describe.kinds': [kind],
            'describe.total_limit': total,
        }

    def _least(self, questions: dict[str, Any] | None) -> float:
        """Return the shortest limit (s) that a fixed configuration keeps."""
        from mmedge_lab.rivals.mmedge.described_flight import least_feasible
        from mmedge_ros.commands.profile import chosen_space, show_phase
        from mmedge_ros.configuration.profiling import Phase
        from mmedge_ros.ros.sessions.profile_session import PhaseDuration, measure

        model, space = chosen_space(self._flight, self._detector)
        fixed = [Phase(space.parts(i), is_check=True) for i in (0, len(space) // 2)]
        duration = PhaseDuration(*_ORACLE_SECONDS)
        return least_feasible(
            measure(self._flight, model, space, fixed, duration, show_phase, questions)
        )

    def _fly(self, name: str, questions: dict[str, Any] | None) -> DescribedFlight:
        from mmedge_lab.rivals.mmedge.described_flight import DescribedFlight
        from mmedge_ros.replay.live_record import LiveRecord
        from mmedge_ros.ros.graph.options import GraphOptions
        from mmedge_ros.ros.sessions.live_session import replay_live

        heard: list[LiveRecord] = []
        options = GraphOptions(
            bag=str(self._flight),
            detector=self._detector,
            params=str(self._parameters),
            optimise=True,
            profile=str(self._profile),
            question_parameters=questions,
        )

        with StatusLine(name) as line:

            def show(share: float, live: LiveRecord) -> None:
                heard[:] = [live]
                line.show(share, live.newest)

            record = replay_live(options, show)
        offset_ns = heard[0].status.offset_ns if heard and heard[0].status else 0
        said = heard[0].described if heard else []
        return DescribedFlight(record, [(at - offset_ns, figures) for at, figures in said])


def _print(report: dict[str, Any]) -> None:
    from mmedge_ros.commands.tables import add_row, new_table, print_parts

    table = new_table(
        f'decision and sentence within {report["total_limit_s"]:g} s, decisions alone within '
        f'{report["limit_ms"]:g} ms',
        *('way', 'kind', 'in time', 'of feasible', 'limit ms', 'p50', 'p95'),
        *('sentences', 'in time', 'take ms', 'streaming IoU', 'promised', 'mostly'),
    )
    for row in report['rows']:
        add_row(
            table,
            row['way'],
            row['kind'],
            _percent(row['in_time']),
            f'{row["feasible"]}/{row["windows"]}',
            *(row[key] for key in ('limit_ms', 'p50_ms', 'p95_ms', 'sentences')),
            _percent(row['sentences_in_time']),
            *(row[key] for key in ('sentence_ms', 'streaming_mean_iou', 'predicted_accuracy')),
            row['configurations'][0]['configuration'] if row['configurations'] else None,
        )
    print_parts(table)
    for name, value in report['least_feasible_ms'].items():
        say(f'the shortest limit that a fixed configuration keeps, {name}: {value} ms')


def _percent(share: float | None) -> str | None:
    return None if share is None else f'{100 * share:.1f} %'


def _ms(seconds: float) -> float | None:
    return round(1e3 * seconds, 1) if seconds < float('inf') else None
