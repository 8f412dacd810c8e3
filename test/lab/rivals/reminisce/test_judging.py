"""Rows beside their controls, with intervals from drawing scenes."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.judging.flight_bootstrap import Estimate
from mmedge_lab.rivals.reminisce.galleries import Found
from mmedge_lab.rivals.reminisce.judging import BETTER, EVEN, WORSE, Judging, verdict

SCENES = 12


def found(*shares: float) -> Found:
    """Ten questions in each scene, of which such shares are answered, in turn."""
    ten = 10.0 * np.resize(shares, SCENES)
    return Found(np.full(SCENES, 10.0), ten, ten)


def compared(row: Found, control: Found) -> dict[str, object]:
    judging = Judging(range(SCENES))
    judging.add('a', 'row', {'words': row})
    judging.add('a', 'control', {'words': control})
    judging.compare('row', 'control')
    (comparison,) = judging.comparisons()
    return comparison


def test_a_gain_in_every_scene_is_better() -> None:
    one = compared(found(0.9, 0.8), found(0.8, 0.7))
    assert one['verdict'] == BETTER
    assert one['words']['value'] == pytest.approx(0.1)


def test_a_gain_in_one_scene_alone_is_no_difference() -> None:
    lucky = np.zeros(SCENES)
    lucky[0] = 1.0
    assert compared(found(*(0.5 + 0.4 * lucky)), found(0.5))['verdict'] == EVEN


def test_a_loss_by_one_figure_outweighs_a_gain_by_another() -> None:
    gain, loss, unknown = Estimate(0.1, 0.05, 0.2), Estimate(-0.1, -0.2, -0.01), Estimate(np.nan)
    assert verdict([gain, unknown]) == BETTER
    assert verdict([gain, loss]) == WORSE


def test_what_was_not_asked_has_no_figure() -> None:
    judging = Judging(range(SCENES))
    judging.add('e', 'row', {'words': found(0.5)}, bytes=76)
    row = judging.rows()['row']
    assert row['bytes'] == 76
    assert np.isnan(row['examples']['value'])
    assert row['words']['value'] == pytest.approx(0.5)


def test_only_what_beats_every_control_is_worth_flying() -> None:
    from mmedge_lab.rivals.reminisce.judging import worth_flying

    rows = [('a', BETTER), ('b', BETTER), ('b', EVEN), ('c', WORSE), ('a', BETTER)]
    assert worth_flying([{'row': row, 'verdict': said} for row, said in rows]) == ['a']
