"""The learned part of fusion in flight: two streaming aggregators and the head over both."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.aggregation.errors import AggregationError
from mmedge_ros.aggregation.state_graph import Array, StateGraph, Tensors
from mmedge_ros.aggregation.streaming_aggregator import (
    Aggregate,
    OnnxStep,
    StreamingAggregator,
    WindowState,
    summary,
)
from mmedge_ros.data_types import CAMERA, RADAR
from mmedge_ros.encoding.feature_grid import MAP_SHAPE
from mmedge_ros.encoding.model_bundle import ModelBundle

_MAPS, _POOLED = 'maps', 'pooled'
_WHAT = 'fusion head for these aggregators'


class FusionNetworkRuntime:
    """Fuses what the aggregators of each modality make of a window; belongs to one thread.

    ``aggregators``, by modality, step the states of windows.

    :param threads: of each network
    :raises AggregationError: if a file cannot be opened, or they do not fit together
    """

    def __init__(self, step_camera: Path, step_radar: Path, fuse: Path, threads: int = 1) -> None:
        steps = {
            CAMERA: OnnxStep(StateGraph(step_camera, threads)),
            RADAR: OnnxStep(StateGraph(step_radar, threads)),
        }
        self._head = StateGraph(fuse, threads)
        self._initial = {modality: step.initial() for modality, step in steps.items()}
        self._require_fitting(steps)
        self.aggregators = {
            modality: StreamingAggregator(step, partial(self._pool, modality), step.place)
            for modality, step in steps.items()
        }

    @classmethod
    def from_bundle(cls, bundle: ModelBundle, threads: int = 1) -> FusionNetworkRuntime:
        """Open the networks of a bundle.

        :raises EncodingError: if the bundle has none, or a file is not the manifest's
        :raises AggregationError: if one cannot be opened, or they do not fit together
        """
        return cls(
            bundle.fusion_part('step_camera'),
            bundle.fusion_part('step_radar'),
            bundle.fusion_part('fuse'),
            threads,
        )

    def fuse(self, states: Mapping[str, WindowState]) -> NDArray[np.float32]:
        """Return the maps (54, 30, 40) of a window; its states can still be stepped on.

        The first 48 channels are semantics as those of a camera grid, the last 6 logarithms of
        ranges in m: of the four cells of stride 8, of stride 16 and of stride 32.

        :param states: of the window, by modality
        """
        tensors = {name: part.tensors for name, part in states.items()}
        maps: Array = self._head.run(self._feeds(tensors), [_MAPS])[0][0]
        return maps

    def finish(self, states: Mapping[str, WindowState]) -> dict[str, Aggregate]:
        """Return what the head is given of each modality; costs what `fuse` does."""
        pooled = self._pooled({name: part.tensors for name, part in states.items()})
        return {name: summary(part, pooled[name]) for name, part in states.items()}

    def _pooled(self, states: Mapping[str, Tensors]) -> dict[str, Array]:
        # The graph asks for all states; what is pooled of a modality depends on its own.
        feeds = self._feeds({**self._initial, **states})
        found = self._head.run(feeds, [f'{modality}_{_POOLED}' for modality in states])
        return {modality: pooled[0] for modality, pooled in zip(states, found, strict=True)}

    def _pool(self, modality: str, tensors: Tensors) -> Array:
        return self._pooled({modality: tensors})[modality]

    def _feeds(self, states: Mapping[str, Tensors]) -> dict[str, Array]:
        return {
            name: tensor
            for modality, tensors in states.items()
            for part, tensor in tensors.items()
            if (name := f'{modality}_{part}') in self._head.inputs
        }

    def _require_fitting(self, steps: Mapping[str, OnnxStep]) -> None:
        shapes = {
            f'{modality}_{name}': tensor.shape
            for modality, tensors in self._initial.items()
            for name, tensor in tensors.items()
        }
        for name in self._head.inputs:
            if name not in shapes:
                raise AggregationError(
                    f'{self._head.path} is no {_WHAT}: they have no {name[:80]!r} for it; use '
                    'the files of one bundle'
                )
            self._head.require(name, shapes[name], _WHAT)
        cells = steps[CAMERA].grid_shape()[1:]
        self._head.require(_MAPS, (1, MAP_SHAPE[0], *cells), _WHAT)
        for modality, step in steps.items():
            newest = self._initial[modality].get('newest', np.zeros(0)).shape
            pooled = self._head.outputs.get(f'{modality}_{_POOLED}', ())
            if newest != (1, *step.grid_shape()) or pooled[2:] != newest[2:]:
                raise AggregationError(
                    f'{self._head.path} is no {_WHAT}: the {modality} has grids of '
                    f'{list(step.grid_shape())}, newest {list(newest)}, pooled {list(pooled)}; '
                    'use the files of one bundle'
                )
