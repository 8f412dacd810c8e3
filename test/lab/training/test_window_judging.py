"""How right boxes are at the instants of windows."""

from __future__ import annotations

import numpy as np
import pytest
from hand_made_features import AWAY, hand_made_flight

from mmedge_lab.training.window_judging import judge
from mmedge_lab.training.window_set import WindowBatch, WindowConfiguration, WindowSet, joined
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.encoding.feature_grid import MAP_SHAPE, SEMANTIC_CHANNELS

WINDOWS = WindowSet([hand_made_flight(seconds=1.2)], 0.5, 0.1)
CHOSEN = WINDOWS.spread(6, WindowConfiguration())


def newest(batch: WindowBatch, away: float = AWAY) -> np.ndarray:
    """What a network does that repeats the newest picture and knows the range."""
    maps = np.full((len(batch.camera.grids), *MAP_SHAPE), np.log(away), np.float32)
    maps[:, :SEMANTIC_CHANNELS] = batch.camera.grids[:, -1, :SEMANTIC_CHANNELS]
    return maps


def test_the_newest_picture_is_compared_with_the_truth_at_its_stamp() -> None:
    fused, alone = judge(WINDOWS, CHOSEN, newest)
    assert fused.at(0.3)[:-1] == alone.at(0.3)[:-1]
    figures = fused.at(0.3).plain()
    assert figures['people'] == len(CHOSEN)
    assert figures['mean_iou'] > 0.6
    assert figures['recall'] == figures['precision'] == 1.0
    assert figures['range_error'] == pytest.approx(0.0, abs=1e-3)


def test_wrong_boxes_lower_the_worth_and_the_best_threshold_avoids_them() -> None:
    def doubtful(batch: WindowBatch) -> np.ndarray:
        maps = newest(batch)
        maps[:, 32:40, 3, 3] = (-1.0, -9.0, -9.0, -9.0, 1.0, 1.0, 1.0, 1.0)
        return maps

    right, _ = judge(WINDOWS, CHOSEN, newest)
    fused, _ = judge(WINDOWS, CHOSEN, doubtful)
    assert fused.at(0.1).worth < 0.7 * right.at(0.1).worth
    assert fused.best().worth == right.best().worth
    assert fused.best().threshold > 0.25


def test_padding_comes_first_so_that_the_newest_unit_is_the_last() -> None:
    flight, end = WINDOWS.ends[-1]
    windows = [
        WINDOWS.at(flight, end, WindowConfiguration()),
        WINDOWS.at(flight, end, WindowConfiguration(camera_rate=10.0)),
    ]
    batch = joined(WINDOWS, windows)
    assert batch.camera.valid[1].tolist() == sorted(batch.camera.valid[1].tolist())
    last = windows[1].units[CAMERA].places[-1]
    known = WINDOWS.flights[0].grids[CAMERA, 'large'][last]
    assert (batch.camera.grids[1, -1] == known).all()
    assert (batch.camera.seconds[1, -1] < batch.camera.seconds[1, -2]).all()
