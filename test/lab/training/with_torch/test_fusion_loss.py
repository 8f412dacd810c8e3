"""The loss of fused maps pulls towards the truth, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mmedge_lab.training.fusion_loss import FusionLoss, complete_iou, iou
from mmedge_lab.training.window_set import UnitBatch, WindowBatch
from mmedge_ros.encoding.feature_grid import SEMANTIC_CHANNELS, VALUES, empty_semantics

NOTHING = np.zeros(0, np.float32)
NO_UNITS = UnitBatch(np.zeros(0, np.float16), NOTHING, NOTHING)
PERSON, CAR = 0.0, 2.0
ALONE = ((0.0, PERSON, 300.0, 100.0, 340.0, 200.0, 12.0),)


def batch_of(
    objects: tuple[tuple[float, ...], ...] = ALONE, ignored: tuple[tuple[float, ...], ...] = ()
) -> WindowBatch:
    return WindowBatch(
        NO_UNITS,
        NO_UNITS,
        np.array(objects, np.float32).reshape(-1, 7),
        np.array(ignored, np.float32).reshape(-1, 6),
    )


def empty_maps(windows: int = 1) -> torch.Tensor:
    maps = torch.full((windows, 54, 30, 40), 2.0)
    maps[:, :SEMANTIC_CHANNELS] = torch.from_numpy(empty_semantics())
    return maps


def maps_that_know(score: float = 6.0, away: float = 12.0) -> torch.Tensor:
    """All cells of stride 16 inside the person of `ALONE` tell its box."""
    maps = empty_maps()
    for row in range(7, 12):
        for column in range(19, 21):
            x, y = 16 * column + 8.0, 16 * row + 8.0
            edges = np.array((x - 300.0, y - 100.0, 340.0 - x, 200.0 - y)) / 16
            maps[0, 4 * VALUES : 4 * VALUES + 8, row, column] = torch.tensor(
                [score, -10.0, -10.0, -10.0, *edges]
            )
    maps[0, SEMANTIC_CHANNELS + 4] = float(np.log(away))
    return maps


def loss_of(maps: torch.Tensor, batch: WindowBatch) -> float:
    return float(FusionLoss()(maps, batch))


def test_knowing_costs_less_than_not_knowing() -> None:
    known, unknown = loss_of(maps_that_know(), batch_of()), loss_of(empty_maps(), batch_of())
    assert known < 0.1
    assert known < 0.05 * unknown


def test_a_sure_box_where_nothing_is_costs() -> None:
    assert loss_of(maps_that_know(), batch_of(())) > 10.0 * loss_of(empty_maps(), batch_of(()))


def test_what_is_ignored_costs_nothing() -> None:
    ignored = batch_of((), ((0.0, PERSON, 300.0, 100.0, 340.0, 200.0),))
    nothing = loss_of(empty_maps(), batch_of(()))
    assert loss_of(maps_that_know(), ignored) == pytest.approx(nothing, rel=0.01)
    of_another_class = batch_of((), ((0.0, CAR, 300.0, 100.0, 340.0, 200.0),))
    assert loss_of(maps_that_know(), of_another_class) > 10.0 * nothing


def test_each_object_has_cells_of_its_own_however_small_or_near_another() -> None:
    objects = (
        (0.0, PERSON, 300.0, 100.0, 340.0, 200.0, 12.0),
        (0.0, PERSON, 305.0, 100.0, 345.0, 200.0, 13.0),
        (0.0, PERSON, 100.0, 50.0, 102.0, 58.0, 50.0),
        (1.0, CAR, 0.0, 300.0, 640.0, 480.0, 4.0),
    )
    loss = FusionLoss()
    maps = empty_maps(2)
    given = loss.assign(loss.cells(maps), torch.from_numpy(batch_of(objects).objects))
    owners = [set(owner[owner >= 0].tolist()) for owner in given.owner]
    assert owners == [{0, 1, 2}, {3}]
    assert ((given.quality > 0.0) == (given.owner >= 0)).all()


def test_overlaps_are_those_known() -> None:
    one = torch.tensor([[0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 10.0], [5.0, 5.0, 5.0, 5.0]])
    two = torch.tensor([[0.0, 0.0, 10.0, 10.0], [5.0, 0.0, 15.0, 10.0], [0.0, 0.0, 1.0, 1.0]])
    assert iou(one, two).tolist() == pytest.approx([1.0, 1 / 3, 0.0])
    complete = complete_iou(one, two)
    assert complete[0] == pytest.approx(1.0)
    assert complete[1] == pytest.approx(1 / 3 - 25.0 / (15.0**2 + 10.0**2))
