"""A look takes the time of the stages that ran, and what was spent besides."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_outputs import STAGE_SECONDS

from mmedge_lab.rivals.smtm.stream_runs import StreamRun, figures_of


def run(right: list[bool], stages: list[int], seconds: list[float]) -> StreamRun:
    return StreamRun(
        np.array(right), np.array(stages), np.array(seconds), np.zeros(len(right), int)
    )


def test_what_is_saved_is_beside_all_stages_without_a_lookup() -> None:
    full = [run([True, True], [2, 2], [0.004, 0.004])] * 2
    early = [
        run([True, True], [1, 1], [0.0011, 0.0011]),
        run([False, True], [1, 2], [0.0011, 0.0047]),
    ]
    figures = figures_of({'full': full, 'memory': early}, STAGE_SECONDS, 3.0, 'full')
    row = figures['memory']
    assert row['accuracy']['value'] == 0.75
    assert row['lost']['value'] == 0.25
    assert (row['lost']['low'], row['lost']['high']) == (0.0, 0.5)
    assert row['saved']['value'] == pytest.approx(0.5)
    assert row['early']['value'] == 0.75
    assert row['exits'] == [0.0, 0.75, 0.25]
    assert row['ms'] == pytest.approx(2.0)
    assert row['mj_saved'] == pytest.approx(6.0), '2 ms at 3 W'
    assert figures['full']['saved']['value'] == pytest.approx(0.0)
