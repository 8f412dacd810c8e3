"""A network in stages: after each one it can be looked at, left, and taken up again.

Each stage is an ONNX file. It reads tensors by name, from the input or from any stage before
it, and its first output is what the stage is about, its *activation*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.feature_grid import EMBEDDING_SIZE
from mmedge_ros.encoding.onnx_session import open_session, runtime_errors

Tensor = NDArray[Any]
Tensors = Mapping[str, Tensor]


@dataclass(frozen=True, eq=False)
class TapState:
    """A run that has come through ``block`` of its stages, and can go on from here at any time.

    ``activation`` is what the last of them put out first, mostly (1, C, H, W), ``made`` all that
    it put out; ``tensors`` are all that later stages, or the outputs, still need.
    """

    block: int
    activation: Tensor
    tensors: Tensors
    made: Tensors = field(default_factory=dict)

    @property
    def pooled(self) -> NDArray[np.float32]:
        """The mean of the activation over all but its channels, (C,)."""
        axes = tuple(axis for axis in range(self.activation.ndim) if axis != 1)
        return np.asarray(self.activation.mean(axis=axes, dtype=np.float32), np.float32)


class TappedNetwork:
    """Runs stages one after another; belongs to one thread; its states may be shared.

    :raises EncodingError: if a file cannot be opened, or a stage reads what none before it
        puts out
    """

    def __init__(self, stages: Sequence[Path], threads: int = 1, device: str = 'cpu') -> None:
        if not stages:
            raise EncodingError('a network of no stages; name at least one file')
        self.place = str(stages[0]) if len(stages) == 1 else f'{stages[0]} to {stages[-1].name}'
        self._places = [str(stage) for stage in stages]
        self.sessions: list[Any] = [open_session(stage, threads, device) for stage in stages]
        self._reads = [tuple(p.name for p in s.get_inputs()) for s in self.sessions]
        self.writes = [tuple(p.name for p in s.get_outputs()) for s in self.sessions]
        self.inputs = self._reads[0]
        self.outputs = self.writes[-1]
        self._require_chain()

    def keep(self, outputs: Sequence[str]) -> None:
        """Spare the work for all outputs but these, whose order becomes that of the last stage."""
        self.outputs = self.writes[-1] = tuple(outputs)

    @property
    def blocks(self) -> int:
        return len(self.sessions)

    def start(self, blob: Tensor | Tensors) -> TapState:
        """Run the first stage.

        :param blob: the input, or inputs by their names where there are several
        :raises EncodingError: if the network fails on it
        """
        return self._step(0, self._named(blob))

    def advance(self, state: TapState) -> TapState:
        """Run one stage more; ``state`` stays as it is and may be used again.

        :raises EncodingError: if the network fails, or the state is at its end or of another
        """
        self._require_own(state)
        if state.block >= self.blocks:
            raise EncodingError(
                f'{self.place} has {self.blocks} stages and all were run; start it anew'
            )
        return self._step(state.block, state.tensors)

    def finish(self, state: TapState) -> dict[str, Tensor]:
        """Run what is left, and return the outputs by their names.

        :raises EncodingError: as ``advance`` does
        """
        self._require_own(state)
        while state.block < self.blocks:
            state = self._step(state.block, state.tensors)
        return dict(state.tensors)

    def run(self, blob: Tensor | Tensors) -> dict[str, Tensor]:
        """Run everything; what ``finish`` returns of a run that was started now."""
        return self.finish(self.start(blob))

    def metadata(self) -> dict[str, str]:
        """Return the metadata of the last stage. Raises EncodingError if it cannot be read."""
        with runtime_errors(f'{self._places[-1]} has unreadable metadata'):
            return dict(self.sessions[-1].get_modelmeta().custom_metadata_map)

    def _step(self, number: int, tensors: Tensors) -> TapState:
        names = self.writes[number]
        feeds = {name: tensors[name] for name in self._reads[number]}
        with runtime_errors(f'{self._places[number]} failed on a unit'):
            made = dict(zip(names, self.sessions[number].run(names, feeds), strict=True))
        later = {name for reads in self._reads[number + 1 :] for name in reads}
        if number + 1 == self.blocks:
            later = set(self.outputs)
        live = {name: value for name, value in {**tensors, **made}.items() if name in later}
        return TapState(number + 1, np.asarray(made[names[0]]), live, made)

    def _named(self, blob: Tensor | Tensors) -> Tensors:
        if isinstance(blob, Mapping):
            return blob
        if len(self.inputs) != 1:
            names = ', '.join(repr(name) for name in self.inputs)
            raise EncodingError(f'{self.place} has {len(self.inputs)} inputs ({names}); name them')
        return {self.inputs[0]: blob}

    def _require_own(self, state: TapState) -> None:
        needed = self._reads[state.block] if 0 < state.block < self.blocks else ()
        missing = [name for name in needed if name not in state.tensors]
        if not 0 < state.block <= self.blocks or missing:
            raise EncodingError(
                f'the state after stage {state.block} is none of {self.place}, which has '
                f'{self.blocks} stages; go on with the network that made it'
            )

    def _require_chain(self) -> None:
        there = set(self.inputs)
        for number, (place, reads) in enumerate(zip(self._places, self._reads, strict=True)):
            missing = [name for name in reads if name not in there]
            if missing:
                raise EncodingError(
                    f'{place}, stage {number + 1}, reads {missing[0]!r}, which no stage before '
                    'it puts out; the stages are not in order, or of different networks'
                )
            if not self.writes[number]:
                raise EncodingError(f'{place} puts out nothing')
            there.update(self.writes[number])


_LARGEST_FLOAT16 = 65504.0


def as_grid(raw: NDArray[Any], place: str) -> NDArray[np.float16]:
    """Return a network's grid (1, C, H, W) as (C, H, W).

    :param place: names the file in messages
    :raises EncodingError: if it has another shape or values that are not finite
    """
    if raw.ndim != 4 or raw.shape[0] != 1:
        raise EncodingError(
            f'{place} puts out a grid of {list(raw.shape)}; '
            'it must be [1, channels, rows, columns]'
        )
    _require_finite('grid', raw, place)
    return np.asarray(np.clip(raw[0], -_LARGEST_FLOAT16, _LARGEST_FLOAT16), np.float16)


def as_embedding(raw: NDArray[Any], place: str) -> NDArray[np.float32]:
    """Return a network's embedding as (E,).

    :raises EncodingError: if it has values that are not finite
    """
    embedding = np.asarray(raw, np.float32).reshape(-1)
    _require_finite('embedding', embedding, place)
    return embedding


class GridEmbedding:
    """The network that makes embeddings of the grids of one modality; belongs to one thread.

    :raises EncodingError: if the file cannot be opened
    """

    def __init__(self, path: Path, threads: int = 1, device: str = 'cpu') -> None:
        self._network = TappedNetwork([path], threads, device)

    def of(self, grid: NDArray[np.float16]) -> NDArray[np.float32]:
        """Return the embedding (E,) of a grid (C, H, W).

        :raises EncodingError: if the network fails on it or puts out no finite numbers
        """
        # The grid as it travels, so that its receiver computes the same embedding.
        outputs = self._network.run(grid[None].astype(np.float32))
        embedding = as_embedding(outputs[self._network.outputs[0]], self._network.place)
        if len(embedding) != EMBEDDING_SIZE:
            raise EncodingError(
                f'{self._network.place} puts out an embedding of {len(embedding)} values; it must '
                f'have {EMBEDDING_SIZE}, use weights and manifest of one and the same bundle'
            )
        return embedding


def _require_finite(name: str, values: NDArray[Any], place: str) -> None:
    # Aggregation over time would carry one such value through all that follows.
    if not np.isfinite(values).all():
        raise EncodingError(
            f'{place} put out a {name} that is not finite; the unit is dropped. '
            'If it happens often, export the network in float32'
        )
