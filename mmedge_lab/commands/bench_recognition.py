"""What `mmedge lab bench recognition` does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import argument, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

if TYPE_CHECKING:
    from rich.table import Table

REPORT = 'recognition.json'
_OPENED = 0.3


def recognition(
    classifier: Annotated[
        str,
        argument('CLASSIFIER', 'bundle with a recogniser, or the name of a bundle'),
    ],
    crops: Annotated[
        Path,
        option(
            '--crops',
            'FOLDER',
            'crops that `mmedge lab train recogniser` keeps',
            exists=True,
            file_okay=False,
        ),
    ],
    out: Annotated[Path, option('--out', 'FOLDER', f'folder of {REPORT} and figures')] = Path(
        'out/bench-recognition'
    ),
    looks: Annotated[
        int, option('--looks', 'N', 'at crops, in each stream', min=100, max=100_000)
    ] = 2000,
    seeds: Annotated[
        int, option('--seeds', 'N', 'by which each stream is drawn', min=2, max=100)
    ] = 8,
    most: Annotated[
        int, option('--pictures', 'N', 'crops of each class at most; 0: all', min=0)
    ] = 200,
    watts: Annotated[
        float,
        option('--watts', 'W', 'of a busy core, for joules: a model', min=0.01, max=1000.0),
    ] = 3.0,
) -> None:
    """Compare the semantic memory of a classifier with its rivals: accuracy, time and energy."""
    with plain_errors():
        from mmedge_lab.rivals.smtm.recognition_bench import RecognitionBench
        from mmedge_lab.rivals.smtm.recognition_figures import FILES, recognition_figures
        from mmedge_lab.rivals.smtm.subject import open_subject
        from mmedge_lab.training import part_of
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.report.report_files import require_writable, write_files

        folder = default_detector(classifier)
        require_writable(out)
        with StatusLine(f'benching {folder.name}') as line:
            subject = open_subject(folder, crops, most, part_of(line.advance, 0.0, _OPENED))
            bench = RecognitionBench(subject, looks, seeds, watts)
            report = {
                'classifier': folder.name,
                **bench.report(part_of(line.advance, _OPENED, 1.0)),
            }
        figures = recognition_figures(report)
        text = json.dumps(report, indent=2, allow_nan=False)
        obsolete = [name for name in FILES if name not in figures]
        write_files(out, {**figures, REPORT: f'{text}\n'.encode()}, obsolete)
    print_parts(*(_table(report, stream) for stream in report['streams']))
    for sentence in _sentences(report):
        say(sentence)
    typer.echo(out / REPORT)


def _table(report: dict[str, Any], stream: str) -> Table:
    table = new_table(
        f'\n{stream}: {report["words"][stream]}',
        'row',
        'right',
        'points lost (95 %)',
        'time saved',
        'early',
        'ms',
        'mJ saved (model)',
    )
    for name, row in report['streams'][stream].items():
        lost = [_points(row['lost'][part]) for part in ('value', 'low', 'high')]
        add_row(
            table,
            name,
            f'{row["accuracy"]["value"]:.3f}',
            f'{lost[0]} ({lost[1]} to {lost[2]})',
            f'{100 * row["saved"]["value"]:.0f} %',
            f'{100 * row["early"]["value"]:.0f} %',
            f'{row["ms"]:.3f}',
            f'{row["mj_saved"]:.2f}',
        )
    return table


def _sentences(report: dict[str, Any]) -> Iterator[str]:
    yield (
        f'{report["judged"]} crops judge, thresholds are fitted on {report["fitted_on"]}; '
        f'{report["seeds"]} streams of {report["looks"]} looks each; the whole classifier takes '
        f'{report["whole_ms"]:.3f} ms; energy is {report["watts"]:g} W times processor time'
    )
    rows = next(iter(report['streams'].values()))
    for name, chosen in report['headline'].items():
        if chosen is not None:
            row = rows[chosen]
            yield (
                f'{name.replace("_", " ")}: {chosen} saves {100 * row["saved"]["value"]:.0f} % of '
                f'the time, {row["mj_saved"]:.2f} mJ a look, and loses '
                f'{_points(row["lost"]["value"])} points where four classes are met'
            )
        elif name.partition('_')[0] not in report['absent']:
            yield f'{name.replace("_", " ")}: no setting loses so little'
    for name, reason in report['absent'].items():
        yield f'note: {name} is not judged: {reason}'


def _points(value: float | None) -> str:
    return '-' if value is None else f'{100 * value + 0.0:.1f}'
