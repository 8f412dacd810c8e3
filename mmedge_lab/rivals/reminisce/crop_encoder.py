"""Runs crops through the recogniser that a flight memory embeds with, many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.judging import EvaluationError
from mmedge_lab.training import OnShare
from mmedge_lab.training.crop_set import CropSet, cut_anew, object_numbers
from mmedge_lab.training.recogniser_labels import CLASSES
from mmedge_ros.data_types import FloatArray
from mmedge_ros.encoding.classifier_description import (
    ATTRIBUTES,
    EXIT,
    LOGITS,
    ClassifierDescription,
    describe_classifier,
)
from mmedge_ros.encoding.crops import as_input
from mmedge_ros.encoding.detector import Image
from mmedge_ros.encoding.onnx_session import runtime_errors
from mmedge_ros.encoding.tapped_network import TappedNetwork
from mmedge_ros.memory.moment import Vectors
from mmedge_ros.memory.spaces import AttributeSpace

BATCH = 32
_ITEMS = 'items'
_TINY = 1e-12


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

    def at(self, exits: NDArray[np.integer]) -> Vectors:
        """Return the vectors (N, D) of crops that left at these exits (N,), from 1."""
        return np.asarray(np.stack(self.vectors)[exits - 1, np.arange(len(exits))], np.float32)


class CropEncoder:
    """The recogniser of a bundle with room for any number of crops in a run; one thread's.

    :param folder: for the stages with a free batch; theirs is 1
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
        self.description: ClassifierDescription = description
        self.space = AttributeSpace(description)
        stages = [stage.verified() for stage in description.stages]
        self.network = TappedNetwork(stages_of_any_batch(stages, folder))
        self.single = TappedNetwork(stages)
        heads = [EXIT.format(number + 1) for number in range(len(stages) - 1)]
        made = self.network.writes
        if not heads or not all(head in of for head, of in zip(heads, made, strict=False)):
            raise EvaluationError(
                f'the recogniser of {bundle} has taps without a head, and nothing is embedded '
                'there; `mmedge lab train recogniser` makes one'
            )
        if any(len(session.get_inputs()) != 1 for session in self.network.sessions):
            raise EvaluationError(
                f'a stage of the recogniser of {bundle} reads more than what the one before puts '
                'out first; `mmedge lab train recogniser` makes stages that do not'
            )

    @property
    def exits(self) -> int:
        return self.network.blocks

    def blobs(self, crops: CropSet) -> NDArray[np.float32]:
        """Return kept crops as inputs (N, 3, h, w)."""
        return self.inputs(cut_anew(crops, self.description.form))

    def inputs(self, pictures: Sequence[Image]) -> NDArray[np.float32]:
        """Return pictures of objects, with the margin of the input, as inputs (N, 3, h, w)."""
        return np.concatenate([as_input(one, self.description.form) for one in pictures])

    def embed(self, crops: CropSet, on_share: OnShare) -> Embedded:
        """Run kept crops through, to every exit.

        :raises EncodingError: if a stage fails
        """
        taps: list[list[Any]] = [[] for _ in range(self.exits - 1)]
        logits: list[list[Any]] = [[] for _ in range(self.exits)]
        for begin in range(0, len(crops.crops), BATCH):
            batch = self.blobs(crops.rows(np.arange(len(crops.crops))[begin : begin + BATCH]))
            for number in range(self.exits):
                made = self.step(number, batch)
                logits[number].append(self._logits(made, number + 1))
                if number < self.exits - 1:
                    taps[number].append(made[self.network.writes[number][0]])
                    batch = made[self.reads(number + 1)]
            on_share(begin / len(crops.crops))
        said = tuple(np.concatenate(of) for of in logits)
        return Embedded(
            tuple(np.concatenate(of) for of in taps),
            said,
            tuple(self.space.vectors(of) for of in said),
            crops.facts,
            crops.scenes,
            object_numbers(crops),
        )

    def activations(self, blobs: NDArray[np.float32], exit_: int) -> NDArray[np.float32]:
        """Return what the encoder resumes from (N, ...) once inputs have come to an exit."""
        found = []
        for begin in range(0, len(blobs), BATCH):
            batch: NDArray[np.float32] = blobs[begin : begin + BATCH]
            for number in range(exit_):
                batch = self.step(number, batch)[self.reads(number + 1)]
            found.append(batch)
        return np.concatenate(found)

    def resumed(self, held: NDArray[np.float32], exit_: int, until: int = 0) -> dict[int, Vectors]:
        """Return the vectors (N, D) of deeper exits, from activations at an exit; 0: inputs.

        :param until: the deepest exit; 0: the end
        :raises EncodingError: if a stage fails
        """
        last = until or self.exits
        found: dict[int, list[Any]] = {number: [] for number in range(exit_ + 1, last + 1)}
        for begin in range(0, len(held), BATCH):
            batch = held[begin : begin + BATCH]
            for number, of in found.items():
                made = self.step(number - 1, batch)
                of.append(self._logits(made, number))
                if number < last:
                    batch = made[self.reads(number)]
        return {number: self.space.vectors(np.concatenate(of)) for number, of in found.items()}

    def reads(self, number: int) -> str:
        """Name what a stage reads, by its number from 0."""
        return str(self.network.sessions[number].get_inputs()[0].name)

    def step(self, number: int, batch: NDArray[np.float32]) -> dict[str, Any]:
        """Run one stage, by its number from 0, on what it reads.

        :raises EncodingError: if it fails
        """
        network = self.single if len(batch) == 1 else self.network
        names = network.writes[number]
        with runtime_errors(f'stage {number + 1} of {network.place} failed on {len(batch)} crops'):
            made = network.sessions[number].run(names, {self.reads(number): batch})
        return dict(zip(names, made, strict=True))

    def _logits(self, made: Any, exit_: int) -> NDArray[np.float32]:
        if exit_ < self.exits:
            return np.asarray(made[EXIT.format(exit_)])
        return np.concatenate([made[LOGITS], made[ATTRIBUTES]], axis=1)


def stages_of_any_batch(stages: Sequence[Path], folder: Path) -> list[Path]:
    """Write copies of stages that take any number of crops in a run.

    :raises EvaluationError: if onnx is not installed
    """
    try:
        import onnx
    except ModuleNotFoundError as err:
        raise EvaluationError(
            f'{err.name} is not installed; ./mmedge install train brings it'
        ) from err
    copies = []
    for stage in stages:
        model = onnx.load(str(stage))
        for port in (*model.graph.input, *model.graph.output, *model.graph.value_info):
            port.type.tensor_type.shape.dim[0].dim_param = _ITEMS
        copies.append(folder / stage.name)
        onnx.save(model, str(copies[-1]))
    return copies


def sureness(logits: Vectors, classes: int) -> FloatArray:
    """Return the odds (N,) of the likeliest class of each row of logits (N, J + A)."""
    of_classes = np.asarray(logits[:, :classes], float)
    powers = np.exp(of_classes - of_classes.max(axis=1, keepdims=True))
    return np.asarray(1.0 / np.maximum(powers.sum(axis=1) - 1.0, _TINY))
