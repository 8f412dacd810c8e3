"""The learned part of fusion in flight: two streaming aggregators and the head over both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding.bricks import (
    FULL_PRECISION,
    FUSION,
    BrickStatus,
    RunTime,
    measured_loading,
)
from mmedge_ros.encoding.bundle.manifest import joint_precision
from mmedge_ros.encoding.bundle.model_bundle import FUSION_PARTS, ModelBundle
from mmedge_ros.encoding.feature_grid import MAP_SHAPE
from mmedge_ros.windows.network_graph import Array, NetworkGraph
from mmedge_ros.windows.streaming_aggregator import (
    Aggregate,
    StreamingAggregator,
    WindowState,
)
from mmedge_ros.windows.temporal_rules import LAGS, OLDEST
from mmedge_ros.windows.unit_networks import OnnxUnitNetworks

_MAPS = 'maps'
_WHAT = 'fusion head for these aggregators'


class FusionNetworkRuntime:
    """Fuses what the aggregators of each modality make of a window; belongs to one thread.

    ``aggregators``, by modality, step the states of windows.

    :param files: by their names in FUSION_PARTS
    :param threads: of each network
    :param open_graph: opens one of them
    :param precision: of their weights
    :raises EncodingError: if a file cannot be opened, or they do not fit together
    """

    def __init__(
        self,
        files: Mapping[str, Path],
        threads: int = 1,
        open_graph: Callable[[Path, int], NetworkGraph] = NetworkGraph,
        precision: str = FULL_PRECISION,
    ) -> None:
        self._precision = precision
        self._run_time = RunTime()
        with measured_loading() as self._loading:
            self.aggregators = {
                modality: StreamingAggregator(
                    OnnxUnitNetworks(
                        open_graph(files[f'project_{modality}'], threads),
                        [
                            open_graph(files[f'change_{modality}_{lag + 1}'], threads)
                            for lag in range(len(LAGS))
                        ],
                    )
                )
                for modality in (CAMERA, RADAR)
            }
            self._head = open_graph(files['fuse'], threads)
        self._require_fitting()

    @classmethod
    def from_bundle(cls, bundle: ModelBundle, threads: int = 1) -> FusionNetworkRuntime:
        """Open the networks of a bundle.

        :raises EncodingError: if the bundle has none, or a file is not the manifest's
        :raises AggregationError: if one cannot be opened, or they do not fit together
        """
        files = {part: bundle.fusion_part(part) for part in FUSION_PARTS}
        return cls(files, threads, precision=joint_precision(bundle.fusion.values()))

    @classmethod
    def from_folder(cls, folder: Path, threads: int = 1) -> FusionNetworkRuntime:
        """Open networks that an export wrote; errors as for the class."""
        return cls({part: folder / f'{part}.onnx' for part in FUSION_PARTS}, threads)

    def fuse(self, states: Mapping[str, WindowState]) -> NDArray[np.float32]:
        """Return the maps (54, 30, 40) of a window; its states can still be stepped on.

        The first 48 channels are semantics as those of a camera grid, the last 6 logarithms of
        ranges in m: of the four cells of stride 8, of stride 16 and of stride 32.

        :param states: of the window, by modality
        :raises EncodingError: if a network fails
        """
        return self.fuse_aggregates(self.finish(states))

    def finish(self, states: Mapping[str, WindowState]) -> dict[str, Aggregate]:
        """Return what the head is given of each modality."""
        return {name: self.aggregators[name].finish(state) for name, state in states.items()}

    def fuse_aggregates(self, aggregates: Mapping[str, Aggregate]) -> NDArray[np.float32]:
        """Return what `fuse` does, of the summaries of a window by modality."""
        feeds = {
            f'{modality}_{name}': tensor
            for modality, aggregate in aggregates.items()
            for name, tensor in _inputs(aggregate).items()
        }
        with self._run_time.timed():
            maps: Array = self._head.run(feeds, [_MAPS])[0][0]
        return maps

    def brick(self) -> BrickStatus:
        """Return what the networks do and cost; a run is one of the head."""
        return BrickStatus(
            FUSION,
            precision=self._precision,
            state=self._run_time.state,
            load_time=self._loading.seconds,
            run_time=self._run_time.mean,
            memory=self._loading.memory,
        )

    def _require_fitting(self) -> None:
        shapes = {
            f'{modality}_{name}': tensor.shape
            for modality, aggregator in self.aggregators.items()
            for name, tensor in _inputs(aggregator.finish(aggregator.begin(0))).items()
        }
        self._head.require_ports(shapes, _WHAT)
        for name, shape in shapes.items():
            self._head.require(name, shape, _WHAT)
        cells = self.aggregators[CAMERA].grid_shape[1:]
        self._head.require(_MAPS, (1, MAP_SHAPE[0], *cells), _WHAT)


def _inputs(aggregate: Aggregate) -> dict[str, Array]:
    """Return what the head takes of a modality; its facts are presence, age and count."""
    age = min(max(aggregate.age, 0.0), OLDEST)
    facts = (float(aggregate.present), age, math.log1p(aggregate.count))
    return {
        'pooled': aggregate.pooled[None],
        'newest': aggregate.newest[None],
        'facts': np.array([facts], np.float32),
    }
