"""How accurate each configuration is expected to be in the present scene: a table, corrected.

What is learnt are the coefficients of a surface over rates and levels, each linear in what is
known of the scene: the surface is added to the table of the bundle. With nothing known it is the
same for every scene.

The manifest's entry::

    predictor:
      network: {weights: predictor.npz, sha256: ..., bytes: 2345}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_ros.adaptation import ConfigurationError
from mmedge_ros.adaptation.accuracy_predictor import AccuracyTable, Indicators
from mmedge_ros.adaptation.configuration_space import LEVELS_FROM_CHEAPEST, ConfigurationSpace
from mmedge_ros.core.data_types import CAMERA, RADAR, FloatArray
from mmedge_ros.core.untrusted_files import read_bounded, shown
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import Manifest
from mmedge_ros.encoding.bundle.number_file import LARGEST_NUMBERS, number_bytes, read_numbers

SECTION, WEIGHTS = 'predictor', 'predictor.npz'
_REMEDY = 'train it again: mmedge lab train fit predictor'
# Standardised inputs are cut here: what was never seen in training must not run away.
_CUT = 3.0
# Where coordinates of a configuration are zero, and what they are counted in: steps of a level,
# and of a rate about the usual ones.
_MIDDLE_LEVEL = LEVELS_FROM_CHEAPEST.index('medium')
_CAMERA_RATE, _CAMERA_STEP = 20.0, 1.5
_RADAR_RATE, _RADAR_STEP = 10.0, 2.0
# Heights are compared with this, px; about where the small detector begins to miss people.
_HEIGHT = 40.0
_LEAST_HEIGHT, _FASTEST, _USUAL_SCORE = 4.0, 5.0, 0.6

FIELDS = (
    *('followed', 'tracks', 'height', 'height_squared', 'smallest', 'score', 'motion'),
    *('brightness', 'contrast', 'sharpness'),
    *('returns', 'moving', 'snr'),
    *('consistency', 'complementarity'),
)
SURFACE = (
    *('all', 'level', 'rate', 'level_squared', 'level_rate'),
    *('radar_rate', 'level_radar_rate'),
)
_SHAPES: dict[str, tuple[int | str, ...]] = {
    'mean': (len(FIELDS),),
    'scale': (len(FIELDS),),
    'offset': (len(SURFACE),),
    'weights': (len(FIELDS), len(SURFACE)),
    'camera_rates': (2,),
    'radar_rates': (2,),
}
_NAMES = {'fields': FIELDS, 'terms': SURFACE}


def encoded(known: Indicators | FloatArray) -> FloatArray:
    """Return the inputs (..., F) of the surface for indicators (..., I); NaN for unknown.

    The only encoding, in training and in flight.
    """
    values = dict(
        zip(Indicators._fields, np.moveaxis(np.asarray(known, float), -1, 0), strict=True)
    )
    tracks = values['tracks']
    followed = np.where(np.isnan(tracks), math.nan, (tracks > 0.0).astype(float))

    def of_tracks(figure: FloatArray) -> FloatArray:
        # That there are no tracks is known; heights are then 0.
        return np.where(followed == 0.0, 0.0, figure)

    def logarithm(height: FloatArray) -> FloatArray:
        return of_tracks(np.log(np.fmax(height, _LEAST_HEIGHT) / _HEIGHT) + 0.0 * height)

    height = logarithm(values['track_height'])
    numbers = (
        followed,
        np.log1p(tracks),
        height,
        height**2,
        logarithm(values['smallest']),
        of_tracks(values['score'] - _USUAL_SCORE),
        of_tracks(np.log1p(np.fmin(values['motion'], _FASTEST) + 0.0 * values['motion'])),
        values['brightness'],
        values['contrast'],
        values['sharpness'],
        np.log1p(values['returns']),
        np.log1p(values['moving']),
        values['snr'],
        values['consistency'],
        1.0 - values['consistency'],
    )
    return np.stack(np.broadcast_arrays(*numbers), axis=-1)


@dataclass(frozen=True, eq=False)
class AccuracySurface:
    """What was learnt.

    ``mean`` and ``scale`` (F,) standardise what is known of a scene, ``offset`` (K,) and
    ``weights`` (F, K) make of it the coefficients of the surface. ``camera_rates`` and
    ``radar_rates`` (Hz, lowest and highest) are those it was learnt from.
    """

    mean: FloatArray
    scale: FloatArray
    offset: FloatArray
    weights: FloatArray
    camera_rates: FloatArray
    radar_rates: FloatArray

    def coefficients(self, fields: FloatArray) -> FloatArray:
        """Return the coefficients (..., K) for what is known (..., F); what is not is usual."""
        usual = np.nan_to_num((fields - self.mean) * self.scale, posinf=_CUT, neginf=-_CUT)
        coefficients: FloatArray = np.clip(usual, -_CUT, _CUT) @ self.weights + self.offset
        return coefficients


def surface_terms(space: ConfigurationSpace) -> FloatArray:
    """Return the terms (size, K) of the surface for each configuration.

    :raises ConfigurationError: for levels of the camera that cannot be put in order
    """
    modalities = [options.modality for options in space.modalities]
    level = np.zeros(len(space))
    rates = {CAMERA: np.full(len(space), _CAMERA_RATE), RADAR: np.full(len(space), _RADAR_RATE)}
    for m, options in enumerate(space.modalities):
        if options.modality in rates:
            rates[options.modality] = space.columns[m].rate
        if options.modality == CAMERA:
            if not set(options.levels) <= set(LEVELS_FROM_CHEAPEST):
                raise ConfigurationError(
                    f'the accuracy predictor does not know the levels {", ".join(options.levels)}'
                )
            ranks = [LEVELS_FROM_CHEAPEST.index(name) - _MIDDLE_LEVEL for name in options.levels]
            level = np.array(ranks, float)[space.columns[m].level]
    if CAMERA not in modalities:
        raise ConfigurationError('the accuracy predictor is for a camera, and there is none')
    rate = np.log(rates[CAMERA] / _CAMERA_RATE) / math.log(_CAMERA_STEP)
    radar = np.log(rates[RADAR] / _RADAR_RATE) / math.log(_RADAR_STEP)
    terms = (np.ones(len(space)), level, rate, level**2, level * rate, radar, level * radar)
    return np.stack(terms, axis=-1)


class LearnedAccuracy:
    """Accuracies in the present scene: the table of the bundle plus a learnt surface.

    :raises ConfigurationError: if the surface was learnt from other levels or rates
    """

    is_measured = True
    uses_indicators = True

    def __init__(
        self, table: AccuracyTable, surface: AccuracySurface, space: ConfigurationSpace
    ) -> None:
        for options in space.modalities:
            known = {CAMERA: surface.camera_rates, RADAR: surface.radar_rates}.get(
                options.modality
            )
            if known is None or min(options.rates) < known[0] or max(options.rates) > known[1]:
                raise ConfigurationError(
                    f'the accuracy predictor was not trained for the rates of the '
                    f'{options.modality} that can be chosen ({shown(options.rates)})'
                )
        self._terms = surface_terms(space)
        self._surface = surface
        self._table = table.predict(Indicators())

    def predict(self, indicators: Indicators) -> FloatArray:
        """Return (size,) accuracies, 0..1; NaN where the table has none."""
        coefficients = self._surface.coefficients(encoded(indicators))
        return within_bounds(self._table + self._terms @ coefficients)


def within_bounds(accuracies: FloatArray) -> FloatArray:
    """Move predictions (..., size) of a scene together into 0..1; NaN stays.

    Cut one by one they would be equal at the bounds, and what is best would not be seen.
    """
    over = np.fmax(np.fmax.reduce(accuracies, axis=-1, keepdims=True) - 1.0, 0.0)
    under = np.fmax(-np.fmin.reduce(accuracies, axis=-1, keepdims=True), 0.0)
    return np.clip(accuracies - over + under, 0.0, 1.0)


def surface_bytes(surface: AccuracySurface) -> bytes:
    """Return the file of a surface."""
    return number_bytes({name: getattr(surface, name) for name in _SHAPES}, _NAMES)


def surface_from(content: bytes, where: str) -> AccuracySurface:
    """Return the surface in a file.

    :param where: what the file is called in messages
    :raises ConfigurationError: if it is none, or one for other inputs
    """
    try:
        return AccuracySurface(**read_numbers(content, _SHAPES, _NAMES))
    except ValueError as err:
        raise ConfigurationError(f'{where} is no accuracy predictor ({err}); {_REMEDY}') from err


def bundle_surface(folder: Path, content: Mapping[str, Any]) -> AccuracySurface | None:
    """Read the surface of a bundle; None where its manifest names none.

    :param content: the manifest
    :raises ConfigurationError: if the file is missing, not the manifest's, or no surface
    """
    section = content.get(SECTION)
    if section is None or (isinstance(section, Mapping) and 'network' not in section):
        return None  # the section may hold the reason
    try:
        path = Manifest(folder).file(SECTION, 'network').verified()
    except EncodingError as err:
        raise ConfigurationError(f'{err}; {_REMEDY}') from err
    data = read_bounded(path, LARGEST_NUMBERS, ConfigurationError, _REMEDY)
    return surface_from(data, str(path))
