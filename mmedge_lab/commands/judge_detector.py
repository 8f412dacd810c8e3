"""What `mmedge lab judge-detector` does: judge detectors by single pictures."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mmedge_ros.commands.display import StatusLine, say
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.options import DetectorArgument, argument, flag, option

if TYPE_CHECKING:
    from mmedge_lab.judging.detector_accuracy import DetectorAccuracy
    from mmedge_ros.report.figure_style import FigureFile

# What strata are called where people read them.
_GROUPS = {'surroundings': 'place', 'all': 'all of'}
_COLUMNS = ('people', 'number', 'AP50', 'recall', 'precision')


def judge_detector(
    detector: DetectorArgument,
    data: Annotated[
        list[Path],
        argument(
            'DATA...',
            'sets of flights; or pictures with labels: a folder with images/NAME.jpg beside '
            'labels/NAME.txt, a data.yaml, a COCO .json',
            exists=True,
        ),
    ],
    beside: Annotated[
        list[str] | None,
        option('--beside', 'DETECTOR', 'judge another one on the same pictures, repeatable'),
    ] = None,
    level: Annotated[
        str, option('--level', 'NAME', 'level of a bundle; its default without')
    ] = '',
    pictures: Annotated[
        int, option('--pictures', 'N', 'look at about so many, spread evenly', min=1)
    ] = 1500,
    trust_weights: Annotated[
        bool, flag('--trust-weights', 'load .pt files, and run whatever code is in them')
    ] = False,
    out: Annotated[Path, option('--out', 'FOLDER', 'folder of the report')] = Path(
        'out/judge-detector'
    ),
) -> None:
    """Judge how well detectors find people in single pictures, by their size, light and source.

    The page shows the tallest people who were missed and the surest boxes on nobody.
    """
    with plain_errors():
        from mmedge_lab.judging import TEMPLATES, EvaluationError
        from mmedge_lab.judging.worst_pictures import WorstPictures
        from mmedge_lab.training.detector_evaluation import evaluate_detector
        from mmedge_ros.commands.tables import add_row, new_table, print_parts
        from mmedge_ros.encoding.bundle.default_model import default_detector
        from mmedge_ros.encoding.bundle.model_bundle import export_trusted
        from mmedge_ros.encoding.detector import DetectorParameters
        from mmedge_ros.report.page import render_page
        from mmedge_ros.report.report_files import require_writable, write_files

        require_writable(out)
        found: dict[str, DetectorAccuracy] = {}
        figures: list[FigureFile] = []
        said = []
        for named in (detector, *(beside or ())):
            path = default_detector(named)
            if trust_weights:
                export_trusted(path, DetectorParameters())
            worst = WorstPictures(path.stem)
            if path.name in found:
                raise EvaluationError(f'two detectors are called {path.name}; name each once')
            with StatusLine(f'judging {path.name}') as line:
                accuracy = evaluate_detector(path, data, pictures, level, line.advance, worst.take)
            found[path.name] = accuracy
            figures += worst.figures()
            said.append(
                f'{path.name}: {accuracy.people} people in {accuracy.pictures} pictures, '
                f'{accuracy.detect_ms:.1f} ms for each; {accuracy.on_nobody} of '
                f'{accuracy.boxes} boxes touch nobody.'
            )
            say(said[-1])
        rows = {name: _rows(accuracy) for name, accuracy in found.items()}
        for name, shown in rows.items():
            table = new_table(name, *_COLUMNS)
            for row in shown:
                add_row(table, *row)
            print_parts(table)
        content = {
            'data': [place.name for place in data],
            'detectors': {name: of.as_json() for name, of in found.items()},
        }
        page = render_page(
            'judge_detector.html.j2',
            content,
            figures,
            folder=TEMPLATES,
            title='Detectors on single pictures',
            summary=f'{", ".join(content["data"])}; {" ".join(said)}',
            tiles=[],
            columns=_COLUMNS,
            rows=rows,
        )
        write_files(
            out,
            {
                **{figure.name: figure.png for figure in figures},
                'judge-detector.html': page.encode(),
                'judge-detector.json': json.dumps(content, indent=1, allow_nan=False).encode(),
            },
        )
    typer.echo(out / 'judge-detector.html')


def _rows(accuracy: DetectorAccuracy) -> list[list[str]]:
    return [
        [
            f'{_GROUPS.get(of.group, of.group)} {of.name}',
            str(of.people),
            *('-' if math.isnan(x) else f'{x:.3f}' for x in (of.ap50, of.recall, of.precision)),
        ]
        for of in accuracy.strata
        if of.people
    ]
