"""Fits the noise scale of a bundle: replays flights, and compares errors with covariances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mmedge_lab.judging.bench import Figure, flight_subject
from mmedge_lab.judging.bench_table import draw_figure
from mmedge_lab.judging.flight_bootstrap import Drawings, Estimate
from mmedge_lab.training import TrainingError
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.replay.offline_session import OfflineOptions, replay_offline
from mmedge_ros.report.accuracy import accuracy_of
from mmedge_ros.report.report_files import write_files
from mmedge_ros.tracking.noise_scale import NOISE_FILE, read_noise_scale

# Horizontal position and velocity.
_DOF = 4


class NoiseFit(NamedTuple):
    """The scale at which the mean NEES is right, and what it is on seeds left out of the fit.

    ``before`` is the mean NEES at the scale that was in the bundle.
    """

    scale: float
    samples: int
    before: Estimate
    left_out: Estimate


def fit_noise_scale(
    bundle: Path,
    flights: Sequence[Path],
    profile: Path | None = None,
    on_progress: Callable[[float, str], None] | None = None,
) -> NoiseFit:
    """Replay flights as they fly, and fit. A scale changes no mean, so that one replay is enough.

    :param profile: service times; None as they are measured
    :raises TrainingError: if there are fewer than two seeds with samples
    :raises ReplayError: if a flight cannot be read
    :raises EncodingError: if the bundle cannot be used
    """
    nees: list[FloatArray] = []
    for number, flight in enumerate(flights):
        if on_progress:
            on_progress(number / len(flights), flight.name)
        record = replay_offline(
            OfflineOptions(
                str(flight),
                str(bundle),
                profile=str(profile or ''),
                pipeline=PipelineParameters(updates=False),
            )
        )
        accuracy = accuracy_of(record, record.truth, at_once=False) if record.truth else None
        values = np.zeros(0) if accuracy is None else accuracy.independent_errors.nees
        nees.append(values[np.isfinite(values)])
    seeds = [flight_subject(flight).seed for flight in flights]
    return fitted_scale(read_noise_scale(bundle), nees, seeds)


def fitted_scale(scale: float, nees: Sequence[FloatArray], seeds: Sequence[str]) -> NoiseFit:
    """Fit the scale to the NEES samples of flights under the scale that they were replayed with.

    :param seeds: that of each flight
    """
    drawings = Drawings.of(seeds)
    sums, counts = (np.array([f(values) for values in nees]) for f in (np.sum, len))
    if drawings.count(counts > 0) < 2:
        raise TrainingError(
            'people were located in flights of fewer than two seeds; name a set with more flights '
            'that have ground truth'
        )
    together = drawings.seeds[:, None] == drawings.seeds
    others = ((~together) @ sums) / np.maximum((~together) @ counts, 1)
    left_out = np.where(counts > 0, _DOF * sums / others, 0.0)

    def estimate(totals: FloatArray) -> Estimate:
        flights = [{'nees': s, 'n': n} for s, n in zip(totals, counts, strict=True)]
        return draw_figure(Figure('mean NEES', 'nees', 'n'), flights, drawings).estimate()

    before = estimate(sums)
    return NoiseFit(scale * before.value / _DOF, int(counts.sum()), before, estimate(left_out))


def write_noise_scale(bundle: Path, fit: NoiseFit) -> None:
    """Put the scale into a bundle.

    :raises ReportError: if it cannot be written
    """
    text = (
        '# How much larger the variances of tracks usually are than the noise models say, by\n'
        f'# `mmedge lab train fit noise` from {fit.samples} samples; '
        f'mean NEES {fit.left_out.value:.2f} '
        f'({fit.left_out.low:.2f} to {fit.left_out.high:.2f}) on seeds left out.\n'
        f'scale: {fit.scale:.3g}\n'
    )
    write_files(bundle, {NOISE_FILE: text.encode()})
