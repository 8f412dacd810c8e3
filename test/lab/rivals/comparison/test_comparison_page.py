"""The page, the Markdown and the figures of a comparison."""

from __future__ import annotations

import copy
import json
import math
import re
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from hand_made_outcomes import FACTS, better_ours, comparison
from page_outline import PageOutline

from mmedge_lab.policies.settings import STATED
from mmedge_lab.rivals.comparison import condition_figures, figures
from mmedge_lab.rivals.comparison.comparison_page import (
    cell,
    comparison_markdown,
    render_comparison_page,
    tiles,
)
from mmedge_lab.rivals.comparison.figures import COMPARISON_FIGURES, draw_comparison
from mmedge_lab.rivals.comparison.plan import ComparisonPlan, plan_comparison
from mmedge_lab.rivals.comparison.report import comparison_report, figure_of
from mmedge_lab.rivals.comparison.run import problems
from mmedge_lab.rivals.comparison.targets import verdicts
from mmedge_lab.rivals.comparison.verdict import Evidence
from mmedge_ros.report.figure_style import FigureFile, render

MODULES = (condition_figures, figures)
MACHINE = {
    'optimizer_us': {
        str(side**4): {
            'equal_to_exhaustive': True,
            'fresh': {'p50': 300.0, 'processor_p50': 290.0},
        }
        for side in (3, 5, 7)
    },
    'gate_us': {
        name: {'p50': 15.0, 'p95': 20.0}
        for name in ('whole', 'asking', 'taking in', 'question', 'network')
    },
    'gate_is_trained': True,
    'aggregation_us': {'camera step': {'p50': 900.0}, 'fuse': {'p50': 1500.0}},
}


def reported(
    plan: ComparisonPlan | None = None, machine: Any = MACHINE, **options: Any
) -> dict[str, Any]:
    made = comparison(better_ours, plan=plan, **options)
    report = {
        'command': 'mmedge lab evaluate SET --quick',
        'bundle': {
            'name': 'people',
            'path': 'models/p',
            'sha256': 'ab' * 32,
            'fusion': True,
            'accuracies': 'an assumed order',
        },
        'sets': ['test'],
        'profile': 'stated',
        'software': {'version': '1', 'git': '', 'bundle': 'people'},
        'verdicts': verdicts(Evidence(made, STATED, machine, 'mmedge lab evaluate SET')),
        **comparison_report(made),
        'machine': machine,
    }
    report['problems'] = problems(report)
    # What is drawn and rendered is what was written.
    return dict(json.loads(json.dumps(report, allow_nan=False)))


@pytest.fixture(autouse=True)
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw with few dots: what takes longest is to compress them."""

    def coarse(module: ModuleType) -> None:
        monkeypatch.setattr(
            module, 'render', lambda draw, width, height: render(draw, width, height, dpi=30)
        )

    for module in MODULES:
        coarse(module)


@pytest.fixture(scope='module')
def report() -> dict[str, Any]:
    return reported()


def page_of(report: dict[str, Any], figures: list[FigureFile] | None = None) -> PageOutline:
    return PageOutline(render_comparison_page(report, figures or []))


def test_the_page_begins_with_verdicts_and_has_every_figure(report: dict[str, Any]) -> None:
    figures = draw_comparison(report)
    assert tuple(figure.name for figure in figures) == COMPARISON_FIGURES
    assert all(figure.narrow for figure in figures)
    page = page_of(report, figures)
    for verdict in report['verdicts']:
        assert verdict['target'] in page.text
        assert verdict['why'] in page.text
    assert page.text.index('Targets') < page.text.index('Accuracy and latency')
    for figure in figures:
        assert figure.title in page.text
        assert figure.caption in page.text
    assert page.text.count('mmedge lab evaluate SET --quick') >= len(figures)
    assert page.text.count('Paper, figure 1') == len(figures)


def test_every_policy_and_factor_has_a_row(report: dict[str, Any]) -> None:
    page, table = page_of(report), comparison_markdown(report)
    for facts in report['plan']['policies']:
        assert facts['words'] in page.text
        assert facts['short'] in table
    for name in ('day', 'night', 'easy', 'hard'):
        assert name in page.text
    assert '0.575' in table


def test_tiles_say_what_matters_most(report: dict[str, Any]) -> None:
    result = {tile.name: tile for tile in tiles(report)}
    assert result['Streaming mean IoU'].value == '0.575'
    assert result['Over the best rival'].value == '+0.100'
    assert result['Below blocking'].value == '95.7 %'
    assert result['Targets met'].value.endswith(f'of {len(report["verdicts"])}')


def test_foreign_names_are_shown_as_they_are(report: dict[str, Any]) -> None:
    foreign = copy.deepcopy(report)
    name = '</script><script>alert(1)</script>$\\frac{'
    foreign['flights'][0] = foreign['sets'][0] = name
    foreign['bundle']['name'] = foreign['software']['git'] = name
    foreign['timeline']['flight'] = name
    foreign['plan']['policies'][0]['short'] = name
    page = page_of(foreign, draw_comparison(foreign))
    assert name[:40] in page.text


def test_the_intervals_are_drawn_by_seed() -> None:
    made = comparison(better_ours)
    paired = replace(made, seeds=('a', 'a', 'b', 'b', 'c', 'c'))
    widths = []
    for case in (made, paired):
        low, high = case.figure(case.plan.cases[0], 'accuracy.mean_iou').estimate[1:]
        widths.append(high - low)
    assert widths[1] > 1.2 * widths[0]
    report = comparison_report(paired)
    assert report['bootstrap']['seeds'] == 3


@pytest.mark.parametrize(
    'plan',
    [
        plan_comparison(FACTS, 'ours'),
        plan_comparison(FACTS, 'blocking'),
        plan_comparison(FACTS, '', 'sample'),
        plan_comparison(FACTS, 'ours,blocking', 'stream'),
    ],
    ids=['only ours', 'only blocking', 'only sample', 'only stream'],
)
def test_whatever_was_left_out_the_rest_is_shown(plan: ComparisonPlan) -> None:
    report = reported(plan, None, flights=1)
    page = page_of(report, draw_comparison(report))
    assert any('only 1 seed of flights' in problem for problem in report['problems'])
    assert 'not measured' in page.text
    assert comparison_markdown(report)


def test_a_policy_that_drops_everything_has_dashes_not_errors() -> None:
    report = reported(
        latency=lambda case: math.nan if case.policy == 'blocking' else 5.0, flights=3
    )
    row = next(row for row in report['cases'] if row['policy'] == 'blocking')
    assert figure_of(row, 'latency_ms.p50')['value'] is None
    page = page_of(report, draw_comparison(report))
    assert '100.0 %' in page.text


@pytest.mark.parametrize(
    ('value', 'form', 'words'),
    [
        (None, 'ms', '–'),
        (4.25, 'ms', '4.2 ms'),
        (-12.0, 'ms', '-12.0 ms'),
        (519.4, 'ms', '519 ms'),
        (0.123, 'percent', '12.3 %'),
        (7.5, 'watts', '7.50 W'),
        (149.6, 'plain', '149.6'),
        (0.5, 'share', '0.500'),
    ],
)
def test_cells_have_as_many_digits_as_they_are_worth(
    value: float | None, form: str, words: str
) -> None:
    assert cell({'value': value, 'low': None, 'high': None}, form) == words


def test_no_table_of_policies_is_wider_than_a_page(report: dict[str, Any]) -> None:
    page = render_comparison_page(report, [])
    heads = re.findall(r'<thead>.*?</thead>', page)
    assert len(heads) > 5
    assert max(head.count('<th ') for head in heads) <= 12


def test_policies_that_did_the_same_share_a_mark(report: dict[str, Any]) -> None:
    labels = [mark.label for mark in figures.joined_marks(report, ['stream', 'sample']).values()]
    assert labels == ['ours = ours without skipping', 'blocking', 'non blocking']
