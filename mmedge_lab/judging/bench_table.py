"""The table of a bench: figures with intervals drawn by seed, as JSON, Markdown and a page."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mmedge_lab.judging import TEMPLATES
from mmedge_lab.judging.bench import Bench, Figure, Results, Row, Sums, total_of
from mmedge_lab.judging.flight_bootstrap import Drawings, Estimate, drawn_quantiles, interval
from mmedge_lab.judging.run_bench import Judged
from mmedge_ros import __version__, git_revision
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.core.plain_values import plain_values
from mmedge_ros.report.page import render_page
from mmedge_ros.report.report_files import write_files

_DIGITS = 5
_ESTIMATE = re.compile(r'\{\s+"value": [^{}]*\}')
_NOTHING = '–'
_END = '<!-- What stands above this line is made anew; what stands below it is kept. -->'


class Drawn(NamedTuple):
    """A figure of a row, those of the drawings (B,), and of how many seeds they are."""

    value: float
    drawn: FloatArray
    seeds: int

    def estimate(self) -> Estimate:
        """Return the figure with its interval."""
        return Estimate(self.value, *interval(self.drawn, self.seeds))


def draw_figure(figure: Figure, flights: Sequence[Sums], drawings: Drawings) -> Drawn:
    """Return a figure over subjects, and over those of each drawing; NaN of nothing."""
    if figure.quantile is not None:
        values = [np.asarray(of.get(figure.above, ()), float).reshape(-1) for of in flights]
        value, drawn = drawn_quantiles(values, figure.quantile, drawings)
        known = [len(part) > 0 for part in values]
    else:
        above = np.array([total_of(of, figure.above) for of in flights])
        # A subject without the column above says nothing, whatever it has below.
        below = np.array(
            [
                0.0
                if figure.above not in of
                else total_of(of, figure.below)
                if figure.below
                else 1.0
                for of in flights
            ]
        )
        with np.errstate(invalid='ignore', divide='ignore'):
            drawn = (drawings.weights @ above) / (drawings.weights @ below)
        value = float(above.sum() / below.sum()) if below.sum() else math.nan
        known = [weight > 0.0 for weight in below]
    return Drawn(
        figure.offset + figure.scale * value,
        figure.offset + figure.scale * drawn,
        drawings.count(known),
    )


def compared(figure: Figure, ours: Drawn, reference: Drawn) -> Drawn:
    """Return ours minus the reference, or divided by it, in the same drawings."""
    seeds = min(ours.seeds, reference.seeds)
    if not figure.relative:
        return Drawn(ours.value - reference.value, ours.drawn - reference.drawn, seeds)
    with np.errstate(invalid='ignore', divide='ignore'):
        drawn = ours.drawn / reference.drawn
    return Drawn(ours.value / reference.value if reference.value else math.nan, drawn, seeds)


def bench_table(name: str, bench: Bench, judged: Judged, command: str = '') -> dict[str, Any]:
    """Return the content of the bench's JSON.

    ``tables``: one for each group of rows, each with its ``rows``: values
    with ``low`` and ``high`` by figure, and ``against``: the same of the comparison with each
    reference. Figures that no row has are left out. ``software`` is what judged.

    :param command: that was run; '' is that of the bench without an option
    :raises EvaluationError: for a row that is asked for, and is not there
    """
    results = dict(judged.results)
    rows = list(bench.rows)
    for row, sums in (bench.derive(results) if bench.derive else {}).items():
        rows.append(row)
        results[row.key] = sums
    rows = bench.shown_of(rows)
    groups = list(dict.fromkeys(row.group for row in rows))
    seeds = [subject.seed or subject.name for subject in bench.subjects]
    tables = [
        _table(bench, [row for row in rows if row.group == group], group, seeds, results)
        for group in groups
    ]
    notes = [f'{key}: not measured: {why}' for key, why in judged.unmeasured.items()]
    if bench.notes:
        notes += bench.notes(results)
    known = {figure for table in tables for row in table['rows'] for figure in row['values']}
    content: dict[str, Any] = plain_values(
        {
            'bench': name,
            'title': bench.title,
            'command': command or f'mmedge lab bench {name}',
            'software': ' '.join(filter(None, (__version__, git_revision()))),
            'about': bench.about,
            'figures': {
                key: {
                    'title': f.title,
                    'digits': f.digits,
                    'relative': f.relative,
                    'shown': f.shown,
                    'compared': f.compared,
                }
                for key, f in bench.figures.items()
                if key in known
            },
            'tables': tables,
            'notes': notes,
        },
        _DIGITS,
    )
    return content


def _table(
    bench: Bench, rows: Sequence[Row], group: str, seeds: Sequence[str], results: Results
) -> dict[str, Any]:
    drawings = Drawings.of(seeds)
    drawn = {
        row.name: {
            key: made
            for key, figure in bench.figures.items()
            if not math.isnan((made := draw_figure(figure, results[row.key], drawings)).value)
        }
        for row in rows
    }
    references = [name for name in bench.references if drawn.get(name)]
    if bench.order:
        places = {name: -of[bench.order].value for name, of in drawn.items() if bench.order in of}
        rows = sorted(rows, key=lambda row: places.get(row.name, math.inf))
    if bench.shown:
        best = [row for row in rows if row.name not in references][: bench.shown]
        rows = [row for row in rows if row.name in references or row in best]
    # A group may be of some subjects alone.
    said = [any(of) for of in zip(*(results[row.key] for row in rows), strict=True)]
    known = [seed for seed, is_known in zip(seeds, said, strict=True) if is_known] or seeds
    return {
        'title': group,
        'subjects': len(known),
        'seeds': len(set(known)),
        'rows': [
            {
                'name': row.name,
                'words': row.words,
                'values': {k: d.estimate()._asdict() for k, d in drawn[row.name].items()},
                'against': {
                    name: {
                        key: compared(bench.figures[key], ours, drawn[name][key])
                        .estimate()
                        ._asdict()
                        for key, ours in drawn[row.name].items()
                        if key in drawn[name]
                    }
                    for name in references
                    if name != row.name
                },
            }
            for row in rows
        ],
    }


class ShownTable(NamedTuple):
    """A table in words: its title, its head and its rows."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def shown_tables(content: Mapping[str, Any]) -> Iterator[ShownTable]:
    """Yield the tables of a bench's JSON as text: values, then comparisons with references."""
    for table in content['tables']:
        rows = table['rows']
        has_words = any(row['words'] for row in rows)
        columns = _columns(content, [row['values'] for row in rows if row['values']], 'shown')
        yield ShownTable(
            ': '.join(filter(None, (table['title'], _over(table)))),
            ('', *(of['title'] for of in columns.values()), *(['what it is'] * has_words)),
            tuple(
                (
                    row['name'],
                    *(_shown(row['values'].get(key), of['digits']) for key, of in columns.items()),
                    *([row['words']] * has_words),
                )
                for row in rows
            ),
        )
        for reference in dict.fromkeys(name for row in rows for name in row['against']):
            against = {
                r['name']: r['against'][reference] for r in rows if reference in r['against']
            }
            columns = _columns(content, list(against.values()), 'compared')
            ways = {
                key: 'ratio' if of['relative'] else 'difference' for key, of in columns.items()
            }
            yield ShownTable(
                ': '.join(filter(None, (table['title'], f'against {reference}'))),
                ('', *(f'{of["title"]}, {ways[key]}' for key, of in columns.items())),
                tuple(
                    (
                        name,
                        *(
                            _shown(values.get(key), of['digits'], of['relative'])
                            for key, of in columns.items()
                        ),
                    )
                    for name, values in against.items()
                    if values
                ),
            )


def _columns(
    content: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], only: str
) -> dict[str, Any]:
    """Return the figures that some row has, of those with the property ``only``."""
    return {
        key: of
        for key, of in content['figures'].items()
        if any(key in row for row in rows) and of[only]
    }


def _over(table: Mapping[str, Any]) -> str:
    if table['seeds'] == 1:
        return 'one seed, so that there are no intervals' if table['subjects'] > 1 else ''
    subjects = '' if table['subjects'] == table['seeds'] else f' ({table["subjects"]} subjects)'
    return f'{table["seeds"]} seeds{subjects}, 95 % intervals drawn by seed'


def _shown(
    estimate: Mapping[str, float | None] | None, digits: int, relative: bool | None = None
) -> str:
    """Write a value; as a difference with its sign, ``relative`` is not None."""
    if estimate is None or estimate['value'] is None:
        return _NOTHING
    form = f'+.{digits}f' if relative is False else f'.{3 if relative else digits}f'
    low, high = estimate['low'], estimate['high']
    between = '' if low is None or high is None else f' ({low:{form}} to {high:{form}})'
    return f'{estimate["value"]:{form}}{between}'


def table_markdown(content: Mapping[str, Any]) -> str:
    """Return a bench's JSON as a page of Markdown."""
    facts = [f'{key}: {value}' for key, value in content['about'].items()]
    facts.append(f'software: {content["software"]}')
    parts = [f'# {content["title"]}\n', f'`{content["command"]}`\n', '; '.join(facts) + '.\n']
    for table in shown_tables(content):
        parts += [f'**{table.title}**\n'] if table.title else []
        parts.append(markdown_table(table.head, table.rows))
    parts += [f'- {note}' for note in content['notes']]
    return '\n'.join(parts).rstrip() + '\n'


def kept_page(content: Mapping[str, Any], path: Path) -> str:
    """Return a bench's JSON as a page of Markdown, with what people have written in a file.

    That is what stands below the line that ends such a page, or all where there is no such line.
    """
    by_hand = path.read_text().rpartition(_END)[2].strip() if path.is_file() else ''
    return f'{table_markdown(content)}\n{_END}\n' + (f'\n{by_hand}\n' if by_hand else '')


def write_table(content: Mapping[str, Any], folder: Path) -> None:
    """Write NAME.json, NAME.md and NAME.html.

    :raises ReportError: if that is not possible
    """
    name = content['bench']
    page = render_page(
        'bench.html.j2',
        content,
        (),
        folder=TEMPLATES,
        title=content['title'],
        summary='',
        tiles=[],
        tables=tuple(shown_tables(content)),
    )
    files = {f'{name}.md': table_markdown(content).encode(), f'{name}.html': page.encode()}
    # An estimate a line, so that people can read and compare what is kept.
    spread = json.dumps(content, indent=1, allow_nan=False)
    text = _ESTIMATE.sub(lambda found: ' '.join(found[0].split()), spread)
    write_files(folder, files | {f'{name}.json': f'{text}\n'.encode()})


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a Markdown table, its first column to the left and the others to the right."""
    lines = [head, ['---', *('---:' for _ in head[1:])], *rows]
    cells = [[str(text).replace('|', '/').replace('\n', ' ') for text in line] for line in lines]
    return ''.join(f'| {" | ".join(line)} |\n' for line in cells)
