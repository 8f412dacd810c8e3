"""What `mmedge lab bench NAME` does: any bench, by one set of options."""

from __future__ import annotations

import difflib
import inspect
import shlex
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import JobsOption, argument, flag, option

_YES, _NO = ('true', 'yes', '1'), ('false', 'no', '0')


InputsArgument = Annotated[
    list[Path] | None,
    argument('[FLIGHTS]...', 'flights, sets of them, or what else the bench takes'),
]
DetectorOption = Annotated[
    str, option('--detector', 'BUNDLE', "bundle, its name, or weights \\[the bench's own choice]")
]
OutOption = Annotated[
    Path, option('--out', 'FOLDER', 'folder of the table as JSON, Markdown and page')
]
QuickOption = Annotated[bool, flag('--quick', 'few flights and repetitions, to see it work')]
RowsOption = Annotated[str, option('--rows', 'NAME,...', 'only these rows \\[all]')]
SettingsOption = Annotated[
    list[str] | None,
    option('--set', 'KEY=VALUE', 'a setting of the bench itself; repeatable'),
]


class BenchEntry(NamedTuple):
    """A bench: the module of the laboratory that makes it, and what it judges.

    That is by ``bench(request, *, settings)``.
    """

    module: str
    words: str


# The one table of benches. A bench's keyword-only parameters are what `--set` may change.
BENCHES: Mapping[str, BenchEntry] = {
    'aggregation': BenchEntry(
        'rivals.mmedge.aggregation_bench',
        'What is left when the last unit of a window has come, for windows of 0.25 s to 4 s.',
    ),
    'drift': BenchEntry(
        'rivals.mmedge.drift_bench',
        'How soon unusual pictures are noticed, and how often in vain.',
    ),
    'fusion': BenchEntry(
        'rivals.mmedge.fusion_bench', 'Feature fusion trained with and without its parts.'
    ),
    'questions': BenchEntry(
        'judging.questions', 'Typed questions answered from tracks, beside a fixed answer.'
    ),
    'recognition': BenchEntry(
        'rivals.smtm.recognition_bench', 'Semantic memory of a recogniser beside its rivals.'
    ),
    'reuse': BenchEntry(
        'rivals.smtm.reuse_bench', 'Object memory beside its rivals: accuracy and processor time.'
    ),
    'power': BenchEntry(
        'rivals.nanomind.power_bench', 'States of power beside other rules, over a discharge.'
    ),
    'bricks': BenchEntry(
        'rivals.nanomind.brick_bench',
        'What networks take to load, run and release, and language models (MODEL.gguf...).',
    ),
    'ring': BenchEntry(
        'rivals.nanomind.ring_bench', 'A raw picture from camera to encoder: ring and Image.'
    ),
    'live': BenchEntry(
        'rivals.mmedge.live_bench',
        'This graph live beside graphs that wait, overloaded, limited and described.',
    ),
    'fixed': BenchEntry(
        'rivals.mmedge.held_bench', 'The optimiser beside every fixed configuration.'
    ),
    'optimizer': BenchEntry(
        'rivals.mmedge.optimizer_bench', 'The optimiser beside exhaustive search, and its time.'
    ),
    'rivals': BenchEntry(
        'rivals.mmedge.rivals_bench',
        'The whole beside its rivals and without each of its parts: accuracy, latency, work.',
    ),
    'world': BenchEntry(
        'rivals.mmedge.world_bench',
        'Who is placed in a world that is hard: fusion, each sensor alone, the ground plane.',
    ),
    'memory': BenchEntry(
        'rivals.reminisce.bench',
        'Parts of the flight memory beside their controls: what is found, time and memory.',
    ),
    'search': BenchEntry(
        'judging.memory_bench', 'How well flight memories find what flights saw.'
    ),
    'trackers': BenchEntry(
        'rivals.trackers.tracker_bench', "This tracker beside others on one level's detections."
    ),
}


def run(
    name: str,
    inputs: Sequence[Path],
    detector: str,
    out: Path,
    jobs: int,
    quick: bool,
    rows: str,
    settings: Sequence[str],
) -> None:
    """Judge a bench, print its tables and write them."""
    with plain_errors():
        from mmedge_lab.judging.bench import BenchRequest
        from mmedge_lab.judging.bench_table import bench_table, shown_tables, write_table
        from mmedge_lab.judging.run_bench import JUDGED, judge
        from mmedge_ros.commands.tables import add_row, new_table, print_parts
        from mmedge_ros.report.report_files import require_writable

        require_writable(out)
        request = BenchRequest(tuple(inputs), detector, out, jobs, quick)
        make = import_module(f'mmedge_lab.{BENCHES[name].module}').bench
        bench = make(request, **read_settings(name, make, settings))
        bench = bench.only([row.strip() for row in rows.split(',') if row.strip()])
        with StatusLine(f'bench {name}') as line:

            def advance(share: float, whole: int) -> None:
                line.advance(share, f'{whole} of {len(bench.subjects)}')

            judged = judge(bench, out / JUDGED / name, jobs, advance)
        given = [*(['--detector', detector] if detector else ()), *(['--quick'] if quick else ())]
        given += ['--rows', rows] if rows else []
        given += [part for setting in settings for part in ('--set', setting)]
        command = shlex.join(['mmedge', 'lab', 'bench', name, *map(str, inputs), *given])
        content = bench_table(name, bench, judged, command)
        write_table(content, out)
        for shown in shown_tables(content):
            table = new_table(f'\n{shown.title}', *shown.head)
            for row in shown.rows:
                add_row(table, *row)
            print_parts(table)
        for note in content['notes']:
            say(note)
    typer.echo(out / f'{name}.json')


def read_settings(name: str, make: Any, settings: Sequence[str]) -> dict[str, Any]:
    """Read KEY=VALUE by the keyword-only parameters of a bench.

    :raises BadParameter: for a key that the bench does not have, or a value of another kind
    """
    known = {
        key: parameter.default
        for key, parameter in inspect.signature(make).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    read = {}
    for text in settings:
        key, _, value = text.partition('=')
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
            raise typer.BadParameter(
                f'bench {name} has no setting {key!r}'
                + (f'; the nearest is {near[0]!r}' if near else '')
                + (f', it has {_words(known)}' if known else ', and none at all'),
                param_hint='--set',
            )
        read[key] = _value(key, value, known[key])
    return read


def _words(known: Mapping[str, Any]) -> str:
    return ', '.join(f'{key}={value}' for key, value in known.items())


def _value(key: str, text: str, default: Any) -> Any:
    """Read a value of the same kind as the default."""
    try:
        if isinstance(default, bool):
            if text.lower() not in (*_YES, *_NO):
                raise ValueError
            return text.lower() in _YES
        return type(default)(text)
    except ValueError as err:
        raise typer.BadParameter(
            f'{key}={text!r} is no {type(default).__name__}, such as {default!r}',
            param_hint='--set',
        ) from err


def bench(
    name: Annotated[str, argument('[NAME]', 'which bench \\[all are listed]')] = '',
    inputs: InputsArgument = None,
    detector: DetectorOption = '',
    out: OutOption = Path('out/bench'),
    jobs: JobsOption = 1,
    quick: QuickOption = False,
    rows: RowsOption = '',
    settings: SettingsOption = None,
) -> None:
    """Judge a part of the system beside rivals: rows on flights, one table.

    Without a name all benches are listed.
    """
    if not name:
        width = max(map(len, BENCHES))
        for known, entry in sorted(BENCHES.items()):
            typer.echo(f'{known:<{width}}  {entry.words}')
        return
    if name not in BENCHES:
        near = difflib.get_close_matches(name, BENCHES, n=1, cutoff=0.0)
        raise typer.BadParameter(f'no bench {name!r}; the nearest is {near[0]!r}')
    run(name, inputs or (), detector, out, jobs, quick, rows, settings or ())
