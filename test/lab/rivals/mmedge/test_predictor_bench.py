"""Choices by a predictor beside those by a table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mmedge_lab.judging.bench import UnmeasuredError
from mmedge_lab.rivals.mmedge import predictor_bench
from mmedge_lab.rivals.mmedge.predictor_bench import judged
from mmedge_lab.training.accuracy_predictor_samples import LEARNT_RATES, SampledWindows
from mmedge_ros.adaptation.accuracy_predictor import Indicators
from mmedge_ros.adaptation.configuration_space import ConfigurationSpace, ModalityOptions

SPACE = ConfigurationSpace(
    [
        ModalityOptions('camera', LEARNT_RATES['camera'], ('small', 'medium')),
        ModalityOptions('radar', LEARNT_RATES['radar'], ('',)),
    ]
)


def test_a_table_that_is_right_has_no_regret_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = np.linspace(0.3, 0.6, len(SPACE))
    monkeypatch.setattr(predictor_bench, 'replayed_space', lambda _: SPACE)
    monkeypatch.setattr(predictor_bench, 'table_of', lambda _: table)
    known = np.zeros((2, len(SPACE), len(Indicators._fields)))
    right = SampledWindows(np.tile(table, (2, 1)), known, np.zeros(2, np.int64))
    nothing = {'regret': 0.0, 'squared': 0.0, 'windows': 2}
    assert judged(tmp_path, False, right) == pytest.approx(nothing)
    wrong = right._replace(values=right.values[:, ::-1])
    assert judged(tmp_path, False, wrong)['regret'] > 0.01
    monkeypatch.setattr(predictor_bench, 'manifest_of', lambda _: {})
    with pytest.raises(UnmeasuredError, match='mmedge lab train fit predictor'):
        judged(tmp_path, True, right)
