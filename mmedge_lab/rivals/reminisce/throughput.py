"""How many items a second each way of leaving the encoder embeds, in each order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.rivals.reminisce.batching import (
    Decide,
    StageRun,
    grouped,
    one_group,
    refilled,
    run_plan,
)
from mmedge_lab.rivals.reminisce.crop_encoder import BATCH, CropEncoder, sureness
from mmedge_lab.rivals.reminisce.exit_choice import ExitPredictor, Exits
from mmedge_lab.training import OnShare
from mmedge_ros.encoding.classifier_description import EXIT

Order = Callable[[Exits, int], Iterable[StageRun]]
AS_THEY_COME, GROUPED, REFILLED = 'as they come', 'grouped by exit', 'refilled'
PREDICTED, SURE = 'predicted exits', 'sure heads'
_ORDERS: Mapping[str, Order] = {
    AS_THEY_COME: one_group,
    GROUPED: grouped,
    REFILLED: refilled,
}
# Orders beside the simplest one, at the same exits.
_ASKED = (
    (PREDICTED, AS_THEY_COME),
    (PREDICTED, GROUPED),
    (PREDICTED, REFILLED),
    (SURE, AS_THEY_COME),
    (SURE, REFILLED),
)


class _Way(NamedTuple):
    name: str
    order: str
    batch: int
    exits: Exits
    decide: Decide


def throughput(
    encoder: CropEncoder,
    blobs: NDArray[np.float32],
    chosen: Mapping[str, Exits],
    predictor: ExitPredictor,
    rounds: int,
    watts: float,
    on_share: OnShare,
) -> list[dict[str, Any]]:
    """Time every way on the same inputs (N, 3, h, w), in turn; one row for each way.

    ``faster`` is how many times as fast as all items one by one to the end at the same batch,
    ``gain`` beside the same exits as they come; with the least and the greatest of the rounds.

    :param chosen: exits (N,) by `PREDICTED` and `SURE`
    :param watts: of a busy core, for joules: a model
    """
    ways = list(_ways(encoder, len(blobs), chosen, predictor))
    # Whatever is done first takes longer.
    for way in ways:
        run_plan(encoder, blobs[:BATCH], list(_plan(way._replace(exits=way.exits[:BATCH]))))
    seconds = np.zeros((rounds, len(ways)))
    for number in range(rounds):
        for place, way in enumerate(ways):
            seconds[number, place] = run_plan(encoder, blobs, list(_plan(way)), way.decide)
        on_share((number + 1) / rounds)
    whole = {way.batch: place for place, way in enumerate(ways) if way.name == 'end'}
    plain = {
        (way.name, way.batch): place for place, way in enumerate(ways) if way.order == AS_THEY_COME
    }
    return [
        {
            'way': way.name,
            'order': way.order,
            'batch': way.batch,
            'per_s': len(blobs) / float(np.median(taken)),
            'mj': 1e3 * watts * float(np.median(taken)) / len(blobs),
            'faster': _range(seconds[:, whole[way.batch]] / taken),
            'gain': _range(seconds[:, plain[way.name, way.batch]] / taken),
        }
        for way, taken in zip(ways, seconds.T, strict=True)
    ]


def stage_ms(encoder: CropEncoder, blobs: NDArray[np.float32], rounds: int) -> list[float]:
    """Return what each stage takes for an item, one at a time: medians of the rounds."""
    up_to = []
    for exit_ in range(1, encoder.exits + 1):
        plan = list(one_group(np.full(len(blobs), exit_, np.int64), 1))
        up_to.append(np.median([run_plan(encoder, blobs, plan) for _ in range(rounds)]))
    return [1e3 * float(taken) / len(blobs) for taken in np.diff(up_to, prepend=0.0)]


def _ways(
    encoder: CropEncoder, number: int, chosen: Mapping[str, Exits], predictor: ExitPredictor
) -> Iterable[_Way]:
    classes = len(encoder.description.classes)

    def predict(stage: int, made: Mapping[str, Any]) -> object:
        return predictor.exits(made[encoder.network.writes[0][0]]) if stage == 0 else None

    def ask_head(stage: int, made: Mapping[str, Any]) -> object:
        return sureness(made[EXIT.format(stage + 1)], classes)

    decide = {PREDICTED: predict, SURE: ask_head}
    for batch in (1, BATCH):
        for exit_ in range(1, encoder.exits + 1):
            name = 'end' if exit_ == encoder.exits else f'exit {exit_}'
            exits = np.full(number, exit_, np.int64)
            yield _Way(name, AS_THEY_COME, batch, exits, lambda _stage, _made: None)
        for name, order in _ASKED:
            if batch > 1 or order == AS_THEY_COME:
                yield _Way(name, order, batch, chosen[name], decide[name])


def _plan(way: _Way) -> Iterable[StageRun]:
    return _ORDERS[way.order](way.exits, way.batch)


def _range(ratios: NDArray[np.float64]) -> dict[str, float]:
    return {
        'value': float(np.median(ratios)),
        'low': float(ratios.min()),
        'high': float(ratios.max()),
    }
