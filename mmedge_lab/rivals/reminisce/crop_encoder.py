"""Runs crops through the recogniser that a flight memory embeds with, many at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.training.crop_set import CLASSES, CropSet, cut_anew, object_numbers
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.encoding.classifier_description import (
    ATTRIBUTES,
    EXIT,
    LOGITS,
    describe_classifier,
)
from mmedge_ros.encoding.crops import as_input
from mmedge_ros.encoding.onnx_session import runtime_errors
from mmedge_ros.encoding.tapped_network import TappedNetwork
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.memory.spaces import AttributeSpace

BATCH = 32
_TINY = 1e-12
Exits = NDArray[np.int64]
Blobs = NDArray[np.float32]


class Embedded(NamedTuple):
    """N crops at each of K exits, the last of which is the end of the network.

    ``taps`` are K - 1 of (N, D_k), ``logits`` K of (N, J + A), ``vectors`` K of (N, D).
    ``facts`` (N, F), ``scenes`` and ``objects`` (N,), the latter numbered over all scenes.
    """

    taps: tuple[Vectors, ...]
    logits: tuple[Vectors, ...]
    vectors: tuple[Vectors, ...]
    facts: NDArray[np.int8]
    scenes: NDArray[np.int32]
    objects: NDArray[np.int64]

    @property
    def exits(self) -> int:
        return len(self.vectors)

    def at(self, exits: Exits) -> Vectors:
        """Return the vectors (N, D) of crops that left at these exits (N,), from 1."""
        return np.asarray(np.stack(self.vectors)[exits - 1, np.arange(len(exits))], np.float32)


class CropEncoder:
    """The recogniser of a bundle with room for any number of crops in a run; one thread's.

    :param folder: for copies of the stages with a free batch; theirs is 1
    :raises EncodingError: if the bundle cannot be used
    :raises EvaluationError: if it has no recogniser with a head at each tap
    """

    def __init__(self, bundle: Path, folder: Path) -> None:
        description = describe_classifier(bundle)
        if description is None or description.classes != CLASSES:
            raise EvaluationError(
                f'{bundle} has no recogniser of simulated objects; name a bundle with one, such '
                'as flight_people'
            )
        self.description, self.space = description, AttributeSpace(description)
        stages = [stage.verified() for stage in description.stages]
        self.network = TappedNetwork([_of_any_batch(stage, folder) for stage in stages])
        self.single = TappedNetwork(stages)
        self.exits = len(stages)
        has_heads = self.exits > 1 and all(
            EXIT.format(number) in self.network.writes[number - 1]
            for number in range(1, self.exits)
        )
        if not has_heads or any(len(one.get_inputs()) != 1 for one in self.network.sessions):
            raise EvaluationError(
                f'the recogniser of {bundle} has taps without a head, or stages that read more '
                'than the one before puts out first; `mmedge lab train recogniser` makes others'
            )

    def blobs(self, crops: CropSet) -> Blobs:
        """Return kept crops as inputs (N, 3, h, w)."""
        form = self.description.form
        return np.concatenate([as_input(one, form) for one in cut_anew(crops, form)])

    def embed(self, crops: CropSet, on_share: OnShare) -> Embedded:
        """Run kept crops through, to every exit.

        :raises EncodingError: if a stage fails
        """
        taps: list[list[Any]] = [[] for _ in range(self.exits - 1)]
        logits: list[list[Any]] = [[] for _ in range(self.exits)]
        for rows in _batches(np.arange(len(crops.crops))):
            held = self.blobs(crops.rows(rows))
            for number in range(self.exits):
                made = self.step(number, held)
                logits[number].append(self._logits(made, number + 1))
                if number < self.exits - 1:
                    taps[number].append(made[self.network.writes[number][0]])
                    held = made[self.reads(number + 1)]
            on_share(int(rows[-1]) / len(crops.crops))
        said = tuple(np.concatenate(of) for of in logits)
        return Embedded(
            tuple(np.concatenate(of) for of in taps),
            said,
            tuple(self.space.vectors(of) for of in said),
            crops.facts,
            crops.scenes,
            object_numbers(crops),
        )

    def activations(self, blobs: Blobs, exit_: int) -> Blobs:
        """Return what the encoder resumes from (N, ...) once inputs have come to an exit."""
        return np.concatenate([self._until(some, 0, exit_) for some in _batches(blobs)])

    def resumed(self, held: Blobs, exit_: int, until: int) -> Vectors:
        """Return the vectors (N, D) of a deeper exit from activations at an exit; 0: inputs.

        :raises EncodingError: if a stage fails
        """
        logits = [
            self._logits(self.step(until - 1, self._until(some, exit_, until - 1)), until)
            for some in _batches(held)
        ]
        return self.space.vectors(np.concatenate(logits))

    def _until(self, held: Blobs, exit_: int, until: int) -> Blobs:
        for number in range(exit_, until):
            held = self.step(number, held)[self.reads(number + 1)]
        return held

    def reads(self, number: int) -> str:
        """Name what a stage reads, by its number from 0."""
        return str(self.network.sessions[number].get_inputs()[0].name)

    def step(self, number: int, batch: Blobs) -> dict[str, Any]:
        """Run one stage, by its number from 0, on what it reads.

        :raises EncodingError: if it fails
        """
        network = self.single if len(batch) == 1 else self.network
        names = network.writes[number]
        with runtime_errors(f'stage {number + 1} of {network.place} failed on {len(batch)} crops'):
            made = network.sessions[number].run(names, {self.reads(number): batch})
        return dict(zip(names, made, strict=True))

    def _logits(self, made: Any, exit_: int) -> Vectors:
        if exit_ < self.exits:
            return np.asarray(made[EXIT.format(exit_)])
        return np.concatenate([made[LOGITS], made[ATTRIBUTES]], axis=1)


def _batches(rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (rows[begin : begin + BATCH] for begin in range(0, len(rows), BATCH))


def _of_any_batch(stage: Path, folder: Path) -> Path:
    """Write a copy of a stage that takes any number of crops in a run.

    :raises EvaluationError: if onnx is not installed
    """
    try:
        import onnx
    except ModuleNotFoundError as err:
        raise EvaluationError(
            f'{err.name} is not installed; ./mmedge install train brings it'
        ) from err
    model = onnx.load(str(stage))
    for port in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        port.type.tensor_type.shape.dim[0].dim_param = 'items'
    onnx.save(model, str(folder / stage.name))
    return folder / stage.name


def sureness(logits: Vectors, classes: int) -> FloatArray:
    """Return the odds (N,) of the likeliest class of each row of logits (N, J + A)."""
    of_classes = np.asarray(logits[:, :classes], float)
    powers = np.exp(of_classes - of_classes.max(axis=1, keepdims=True))
    return np.asarray(1.0 / np.maximum(powers.sum(axis=1) - 1.0, _TINY))
