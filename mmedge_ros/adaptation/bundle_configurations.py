"""The configurations that a model bundle allows, and their accuracies by its manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.accuracy_predictor import (
    AccuracyPredictor,
    assumed_accuracy,
    bundle_accuracy,
)
from mmedge_ros.adaptation.configuration_space import (
    ConfigurationSpace,
    ModalityOptions,
    from_cheapest,
)
from mmedge_ros.adaptation.learned_accuracy import LearnedAccuracy, bundle_surface
from mmedge_ros.adaptation.unit_time_profile import (
    StageTime,
    UnitTimeProfile,
    assumed_unit_times,
    stage_time,
)
from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.core.untrusted_files import shown
from mmedge_ros.encoding.bundle.model_bundle import load_bundle, model_levels


def bundle_levels(model: Path, modality: str) -> tuple[str, ...]:
    """Return the levels a modality has, from the cheapest; ('',) where it has none of its own.

    Levels of other names than small, medium and large are as costly as the manifest lists them.

    :raises EncodingError: if a bundle's manifest cannot be read
    """
    if modality == CAMERA:
        levels = model_levels(model)[0]
    else:
        entry = manifest_of(model).get(modality)
        listed = entry.get('levels') if isinstance(entry, Mapping) else None
        levels = tuple(map(str, listed)) if isinstance(listed, Mapping) else ()
    return from_cheapest(levels) or ('',)


def bundle_defaults(model: Path) -> dict[str, str]:
    """Return the level of each modality that is used where none is named; '' where unknown.

    :raises EncodingError: if a bundle's manifest cannot be read
    """
    content = manifest_of(model)
    entries = {m: content.get(m) for m in (CAMERA, RADAR)}
    return {
        m: str(entry.get('default', '')) if isinstance(entry, Mapping) else ''
        for m, entry in entries.items()
    }


def bundle_space(
    model: Path,
    modalities: Sequence[str],
    rates: Mapping[str, Sequence[float]],
    camera_reuse: Sequence[int] = (1,),
) -> ConfigurationSpace:
    """Return every rate with every level of each modality, and every reuse of the camera's.

    Where a modality is encoded is left to its encoder: the device is empty.

    :param rates: Hz, ascending, by modality
    :raises EncodingError: if a bundle's manifest cannot be read
    :raises ConfigurationError: for rates that cannot be
    """
    return ConfigurationSpace(
        [
            ModalityOptions(
                modality,
                tuple(rates[modality]),
                bundle_levels(model, modality),
                device='',
                reuse=tuple(sorted(camera_reuse, reverse=True)) if modality == CAMERA else (1,),
            )
            for modality in modalities
        ]
    )


def manifest_of(model: Path) -> Mapping[str, Any]:
    """Return all of a bundle's manifest; nothing for a plain weight file.

    :raises EncodingError: if it cannot be read
    """
    return load_bundle(model).content if model.is_dir() else {}


def bundle_unit_times(model: Path, space: ConfigurationSpace) -> tuple[UnitTimeProfile, bool]:
    """Return unit times to begin with where no profile was measured.

    They are assumed, but for camera levels whose ``encode_ms`` (median and p95) the manifest
    says; True if it says all of them.

    :raises EncodingError: if the manifest cannot be read
    :raises ConfigurationError: for times that cannot be
    """
    assumed = assumed_unit_times(space)
    camera = manifest_of(model).get(CAMERA)
    levels = camera['levels'] if isinstance(camera, Mapping) else {}
    measured = {
        (CAMERA, level): _encode_time(level, entry['encode_ms'])
        for level, entry in levels.items()
        if 'encode_ms' in entry
    }
    known = {key: measured.get(key, time) for key, time in assumed.units.items()}
    is_measured = all(key in measured for key in known if key[0] == CAMERA)
    return replace(assumed, units=known), is_measured


def _encode_time(level: str, entry: Any) -> StageTime:
    times = [entry.get(name) if isinstance(entry, Mapping) else None for name in ('median', 'p95')]
    known = [1e-3 * time for time in times if isinstance(time, int | float)]
    if len(known) < len(times):
        raise ConfigurationError(
            f'camera.levels.{level}.encode_ms of the manifest must be {{median: ms, p95: ms}}, '
            f'not {shown(entry)}'
        )
    return stage_time(*known)


class BundlePredictor(NamedTuple):
    """``source`` names where accuracies come from, ``note`` what could not be used."""

    predictor: AccuracyPredictor
    source: str
    note: str = ''


def bundle_predictor(model: Path, space: ConfigurationSpace) -> BundlePredictor:
    """Return the learnt predictor of a bundle, else its table, else an assumed order.

    A learnt predictor that is damaged, missing or made for other configurations is replaced by
    the table, which is nearly as good, with a ``note``.

    :raises EncodingError: if the manifest cannot be read
    :raises ConfigurationError: for a table that cannot be read
    """
    content = manifest_of(model)
    table = bundle_accuracy(content, space)
    if table is None:
        return BundlePredictor(assumed_accuracy(space), 'assumed: every rate and level helps')
    plain = BundlePredictor(table, 'the table of the bundle')
    try:
        surface = bundle_surface(model, content)
        if surface is None:
            return plain
        learnt = LearnedAccuracy(table, surface, space)
    except ConfigurationError as err:
        return plain._replace(note=f'accuracies come from the table alone: {err}')
    return BundlePredictor(learnt, 'the table of the bundle, corrected by what is seen')
