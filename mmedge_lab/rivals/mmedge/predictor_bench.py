"""Choices by a bundle's accuracy predictor beside those by its table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from mmedge_lab.judging.bench import (
    Bench,
    BenchRequest,
    Figure,
    Row,
    Subject,
    Sums,
    UnmeasuredError,
)
from mmedge_lab.judging.bundle_under_test import BundleUnderTest
from mmedge_lab.judging.judged_flight import bundle_about, bundle_of
from mmedge_lab.training.accuracy_predictor import errors, loads, predicted, regrets, table_of
from mmedge_lab.training.accuracy_predictor_samples import (
    SampledWindows,
    collect,
    collected,
    replayed_space,
)
from mmedge_lab.worker_processes import OnShare
from mmedge_ros.adaptation.bundle_configurations import manifest_of
from mmedge_ros.adaptation.learned_accuracy import bundle_surface

TABLE, PREDICTOR = 'table', 'predictor'
_FIGURES = {
    'regret': Figure('regret of choices', 'regret', 'windows', 4),
    'squared': Figure('squared error', 'squared', 'windows', 4),
}


def _replayed(
    bundle: BundleUnderTest, seconds: float, subject: Subject, _: Sequence[Row], on_share: OnShare
) -> SampledWindows:
    """Replay a flight in every configuration."""
    return collected(collect(bundle, seconds, subject.flight, 0, on_share))


def bench(request: BenchRequest, *, seconds: float = 4.0) -> Bench:
    """Compare what is chosen under limits of the load by the predictor and by the table.

    :param seconds: so much of each flight; 0: all of it
    """
    bundle, subjects = bundle_of(request.detector), request.flights()
    return Bench(
        'Choices by the accuracy predictor beside the table',
        (
            Row(TABLE, partial(judged, bundle.folder, False), 'knows the configuration alone'),
            Row(PREDICTOR, partial(judged, bundle.folder, True), 'knows the scene as well'),
        ),
        _FIGURES,
        subjects,
        partial(_replayed, bundle, seconds),
        references=(TABLE,),
        key=f'{bundle.digest} {seconds:g}',
        about=bundle_about(bundle, subjects),
    )


def judged(bundle: Path, by_scene: bool, windows: SampledWindows) -> Sums:
    """Sum up over windows how far choices are from the best, and the squared errors."""
    space, table = replayed_space(bundle), table_of(bundle)
    count = len(windows.values)
    made = np.broadcast_to(table, (count, len(table), len(table)))
    if by_scene:
        surface = bundle_surface(bundle, manifest_of(bundle))
        if surface is None:
            raise UnmeasuredError(
                'the bundle holds no predictor; `mmedge lab train fit predictor` makes one'
            )
        made = predicted(windows, surface, table, space)
    return {
        'regret': float(regrets(windows.values, made, loads(space)).sum()),
        'squared': float(errors(windows.values, made).sum()),
        'windows': count,
    }
