"""What `mmedge lab bench model` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import argument, option
from mmedge_ros.commands.tables import add_row, new_table, print_parts

REPORT = 'model.json'
_MOST_THREADS = 256


def model(
    models: Annotated[
        list[Path],
        argument('GGUF...', 'language models', exists=True, dir_okay=False),
    ],
    projectors: Annotated[
        list[Path] | None,
        option(
            *(
                '--mmproj',
                'FILE',
                'projector, with which a model sees; repeatable, to compare some',
            ),
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    threads: Annotated[str, option('--threads', 'N,...', 'numbers of threads, such as 1,2')] = '1',
    rounds: Annotated[
        int, option('--rounds', 'N', 'loads of each; medians are shown', min=1, max=100)
    ] = 3,
    tokens: Annotated[int, option('--tokens', 'N', 'longest answer', min=8, max=1000)] = 64,
    out: Annotated[Path, option('--out', 'FOLDER', f'folder of {REPORT}')] = Path(
        'out/bench-model'
    ),
) -> None:
    """Measure what language models of your own take: loading, first token, tokens/s, memory."""
    counts = _counts(threads)
    with plain_errors():
        from mmedge_lab.rivals.mmedge.model_bench import ModelBench, run_model_bench
        from mmedge_ros.report.report_files import require_writable, write_files

        require_writable(out)
        bench = ModelBench(models, projectors or (), counts, rounds, tokens)
        with StatusLine('measuring models') as line:
            report = run_model_bench(bench, line.advance)
        text = json.dumps(report, indent=2, allow_nan=False)
        write_files(out, {REPORT: f'{text}\n'.encode()})
    for problem in report['problems']:
        say(f'not measured: {problem}')
    _print(report)
    typer.echo(out / REPORT)


def _counts(text: str) -> list[int]:
    """Read numbers of threads between commas.

    :raises BadParameter: if the text says something else
    """
    parts = [part.strip() for part in text.split(',')]
    if not all(
        part.isdecimal() and len(part) < 4 and 1 <= int(part) <= _MOST_THREADS for part in parts
    ):
        raise typer.BadParameter(
            f'{text!r}: numbers from 1 to {_MOST_THREADS}, such as 1,2', param_hint='--threads'
        )
    return [int(part) for part in parts]


def _print(report: dict[str, Any]) -> None:
    table = new_table(
        f'answers of at most {report["tokens"]} tokens, medians of {report["rounds"]} loads',
        *('model', 'projector', 'threads', 'files MB', 'load ms', 'first token ms'),
        *('tokens/s', 'memory MB'),
    )
    for row in report['rows']:
        add_row(
            table,
            row['model'],
            row['projector'] or '',
            row['threads'],
            row['file_mb'],
            f'{row["load_ms"]:.0f}',
            f'{row["first_token_ms"]:.0f}',
            f'{row["tokens_per_s"]:.1f}',
            f'{row["memory_mb"]:.0f}',
        )
    print_parts(table)
