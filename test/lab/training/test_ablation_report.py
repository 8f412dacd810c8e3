"""The page, the figure and the table of ablations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hand_made_ablations import run_of, runs

from mmedge_lab.training.ablation_report import page, summary, write_ablations
from mmedge_lab.training.ablation_table import VARIANTS, tabulate

PLAN = {'settings': {'epochs': 2, 'batch': 8}, 'learned_from': ['a', 'b']}


@pytest.fixture
def table() -> dict[str, Any]:
    made = runs(lambda name, seed: 50.0 + seed - 5.5 * (name == 'last_unit'))
    return {'plan': PLAN, 'steps': 280, **tabulate(made)}


def test_the_page_says_what_was_done_and_what_came_of_it(table: dict[str, Any]) -> None:
    text = page(table)
    assert '3 times, with the seeds 0, 1, 2: 2 epochs on 2 flights, 280 steps of 8' in text
    for variant in VARIANTS:
        assert f'| {variant.title} | ' in text
    assert '| full | 0.464 ± 0.009 |' in text
    assert '| without aggregation (last unit only) | -0.050 (-0.050 to -0.050) |' in text
    assert '| newest picture alone | 0.364 |' in text


def test_the_summary_has_a_line_for_each_network(table: dict[str, Any]) -> None:
    lines = summary(table)
    assert len(lines) == len(VARIANTS)
    assert lines[0] == 'full: worth 0.464 ± 0.009'
    assert lines[3].endswith('0.414 ± 0.009, -0.050 (-0.050 to -0.050)')


def test_all_files_are_written_and_the_figure_shows_something(
    table: dict[str, Any], tmp_path: Path
) -> None:
    write_ablations(tmp_path / 'out', table)
    result = sorted(path.name for path in (tmp_path / 'out').iterdir())
    assert result == ['ablations.png', 'report.json', 'report.md']
    assert json.loads((tmp_path / 'out/report.json').read_text()) == table
    image = cv2.imread(str(tmp_path / 'out/ablations.png'))
    assert image is not None
    assert image.shape[1] > image.shape[0] > 600
    assert np.unique(image.reshape(-1, 3), axis=0).shape[0] > 50


def test_figures_that_are_not_known_are_left_out(tmp_path: Path) -> None:
    made = [run_of(v.name, 0, 0.0, hits=0, wrong=-100, error=float('nan')) for v in VARIANTS]
    table = {'plan': PLAN, 'steps': 1, **tabulate(made)}
    write_ablations(tmp_path, table)
    assert '| full | – |' in (tmp_path / 'report.md').read_text()
