"""The page, the table and the figures of an evaluation."""

import copy

import pytest
from hand_made_evaluation import evaluation
from page_outline import PageOutline

from mmedge_lab.judging import bundle_figures, configuration_maps
from mmedge_lab.judging.bundle_figures import BUNDLE_FIGURES, draw_bundle
from mmedge_lab.judging.bundle_page import bundle_markdown, render_bundle_page
from mmedge_lab.judging.bundle_report import evaluation_report
from mmedge_lab.judging.configuration_maps import draw_axes
from mmedge_ros.report.figure_style import FigureFile, render


def reported(**options) -> dict:
    def worth(case, flight):
        return 0.5 + 0.01 * flight - 0.05 * (case.strategy != 'fusion')

    described = {
        'bundle': {'name': 'people', 'path': 'models/p', 'sha256': 'ab' * 32, 'fusion': True},
        'set': 'test',
        'profile': 'nominal',
        'software': {'version': '1', 'git': '', 'bundle': 'people'},
        'problems': ['something'],
    }
    return described | evaluation_report(evaluation(worth, flights=4, **options))


@pytest.fixture(autouse=True)
def _coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw with few dots: what takes longest is to compress them."""
    for module in (bundle_figures, configuration_maps):
        monkeypatch.setattr(
            module, 'render', lambda draw, width, height: render(draw, width, height, dpi=40)
        )


@pytest.fixture(scope='module')
def report() -> dict:
    return reported()


def test_every_figure_is_drawn_and_equal_input_gives_equal_bytes(report: dict) -> None:
    drawn = draw_bundle(report)
    assert {figure.name for figure in drawn} == set(BUNDLE_FIGURES)
    assert all(figure.png.startswith(b'\x89PNG') and figure.narrow for figure in drawn)
    again = draw_axes(report)
    assert again.png == next(figure.png for figure in drawn if figure.name == again.name)


def test_one_configuration_over_one_flight_can_be_drawn() -> None:
    alone = reported(every_configuration=False, learned_fusion=False)
    assert {figure.name for figure in draw_bundle(alone)} == {
        'strategies.png',
        'differences.png',
        'strata.png',
    }
    assert '<html' in render_bundle_page(alone, [])


def test_the_page_needs_nothing_beside_it(report: dict) -> None:
    figure = FigureFile('strata.png', b'png', 'title', 'caption', 'alternative')
    assert 'img' in PageOutline(render_bundle_page(report, [figure])).tags


def test_names_on_the_page_are_escaped(report: dict) -> None:
    hostile = copy.deepcopy(report)
    hostile['bundle']['name'] = '<script>alert(1)</script>'
    hostile['problems'] = ['<b>bold</b>']
    page = PageOutline(render_bundle_page(hostile, []))
    assert '<script>alert(1)</script>' in page.text
    assert '<b>bold</b>' in page.text


def test_the_table_holds_every_configuration_and_claim(report: dict) -> None:
    text = bundle_markdown(report)
    assert text.count('\n| large |') + text.count('\n| medium |') + text.count('\n| small |') == 81
    assert 'better than camera only at night' in text
    rows = [line for line in text.splitlines() if line.startswith('|')]
    assert all(line.endswith('|') for line in rows)
