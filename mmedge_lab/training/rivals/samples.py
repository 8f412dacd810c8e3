"""What rivals learn from, and how it is kept: arrays whose rows belong to flights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.policies.imputation import PERSON_FIELDS
from mmedge_lab.policies.policy_features import POLICY_FIELDS
from mmedge_lab.training.flight_works import keep_arrays, kept_arrays
from mmedge_ros.data_types import FloatArray

_FIELDS = {'seen': POLICY_FIELDS, 'before': PERSON_FIELDS}


class GatingSamples(NamedTuple):
    """Windows in which the camera rested: policy features (N, F), and whether that was no loss.

    ``worse`` (N,) is by how much the quality fell, ``agrees`` (N,) whether the decision is the
    same as the one in which nothing ever rested.
    """

    seen: FloatArray
    no_loss: NDArray[np.bool_]
    worse: FloatArray
    agrees: NDArray[np.bool_]
    flights: NDArray[np.int64]


class SelectionSamples(NamedTuple):
    """Windows: policy features (N, F), and the quality with each level (N, K), around it."""

    seen: FloatArray
    quality: FloatArray
    flights: NDArray[np.int64]


class ImputationSamples(NamedTuple):
    """People in pictures before a missing one: inputs (N, F), and what became of them.

    ``found`` (N,) is whether they are in the missing picture, ``moved`` (N, 4) how far they
    moved there, ``boxes`` and ``truths`` (N, 4) are the boxes before and there, px.
    """

    before: FloatArray
    found: NDArray[np.bool_]
    moved: FloatArray
    boxes: FloatArray
    truths: FloatArray
    flights: NDArray[np.int64]


class FlightSamples(NamedTuple):
    """All samples of a flight, or of many."""

    gating: GatingSamples
    selection: SelectionSamples
    imputation: ImputationSamples


def joined(parts: Sequence[FlightSamples]) -> FlightSamples:
    """Put the samples of flights together."""
    return FlightSamples(
        GatingSamples(*map(np.concatenate, zip(*(p.gating for p in parts), strict=True))),
        SelectionSamples(*map(np.concatenate, zip(*(p.selection for p in parts), strict=True))),
        ImputationSamples(*map(np.concatenate, zip(*(p.imputation for p in parts), strict=True))),
    )


def keep_samples(path: Path, samples: FlightSamples) -> None:
    """Write the samples of a flight.

    :raises TrainingError: if they cannot be written
    """
    arrays: dict[str, Any] = {
        f'{name}.{column}': values
        for name, part in samples._asdict().items()
        for column, values in part._asdict().items()
    }
    arrays |= {f'fields.{name}': np.array(names) for name, names in _FIELDS.items()}
    keep_arrays(path, arrays)


def kept_samples(path: Path) -> FlightSamples | None:
    """Read the samples of a flight; None where there are none of this version.

    :raises TrainingError: if they are damaged
    """
    arrays = kept_arrays(path)
    if arrays is None or any(
        tuple(arrays[f'fields.{name}'].tolist()) != names for name, names in _FIELDS.items()
    ):
        return None

    def part(name: str, columns: tuple[str, ...]) -> list[np.ndarray]:
        return [arrays[f'{name}.{column}'] for column in columns]

    return FlightSamples(
        GatingSamples(*part('gating', GatingSamples._fields)),
        SelectionSamples(*part('selection', SelectionSamples._fields)),
        ImputationSamples(*part('imputation', ImputationSamples._fields)),
    )
