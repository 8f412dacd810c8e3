"""What the manifest of a bundle says of its recogniser.

It is the section ``recogniser``::

    recogniser:
      format: 1
      classes: [person black, person red, car white]
      labels: [person, car]
      input: {size: [32, 48], mean: [...], deviation: [...], rgb: true, margin: 0.1, square: false}
      stages:
        - {weights: recogniser_1.onnx, sha256: 5f70bf18a086...}
        - {weights: recogniser_2.onnx, sha256: 3e23e8160039...}
      memory: {weights: recogniser.npz, sha256: 2c624232cc60...}
      exits: [25.1]
      attributes: {bottom: [black, grey, white], backpack: [no, yes]}

Each stage but the last puts out first what its tap gives: the mean of its feature map (1, D), or
the map itself (1, D, h, w). The last one puts out ``logits`` (1, J) and, where there are
attributes, ``attributes`` (1, A). A stage with a tap may put out ``exit_<number>`` (1, J + A),
too, its number from 1: what a head of its own says there. Where its likeliest class has odds
(p / (1 - p)) of at least the entry of ``exits``, the rest need not run. ``labels``, ``memory``,
``exits`` and ``attributes`` are optional.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.core.untrusted_files import is_number
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import BundleFile, Manifest
from mmedge_ros.encoding.crops import CropForm

SECTION = 'recogniser'
FORMAT = 1
LOGITS, ATTRIBUTES, EXIT = 'logits', 'attributes', 'exit_{}'
_MOST_CLASSES = 10_000
_LARGEST_SIDE, _LARGEST = 1024, 1e6
_TINY = 1e-12


@dataclass(frozen=True)
class ClassifierDescription:
    """What a manifest says of a classifier.

    ``attributes`` are the values of each, in order. A class whose name begins with one of
    ``labels`` is that label, and the rest of its name is one more attribute. ``exits`` are the
    least odds at which each tap is left.
    """

    classes: tuple[str, ...]
    form: CropForm
    stages: tuple[BundleFile, ...]
    memory: BundleFile | None = None
    attributes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    exits: tuple[float, ...] = ()

    def attribute_values(self, logits: NDArray[np.float32]) -> dict[str, tuple[str, float]]:
        """Return the likeliest value of each attribute, and its probability.

        :param logits: (A,), or empty where an exit knows none
        """
        found: dict[str, tuple[str, float]] = {}
        begin = 0
        for name, values in self.attributes.items():
            part = logits[begin : begin + len(values)]
            begin += len(values)
            if len(part) == len(values) and np.isfinite(part).all():
                shares = softmax(part)
                best = int(shares.argmax())
                found[name] = (values[best], float(shares[best]))
        return found


def describe_classifier(folder: Path) -> ClassifierDescription | None:
    """Return what a bundle says of its recogniser; None if it has none.

    :raises EncodingError: if the manifest, or this section of it, cannot be used
    """
    manifest = Manifest(folder)
    if not manifest.has(SECTION):
        return None
    section = manifest.section_of_format(SECTION, FORMAT, 'make the recogniser with this version')
    attributes = manifest.names_by_name(SECTION, 'attributes')
    memory = manifest.file(SECTION, 'memory') if section.get('memory') is not None else None
    labels = manifest.names(SECTION, 'labels', _MOST_CLASSES) if 'labels' in section else ()
    return ClassifierDescription(
        manifest.names(SECTION, 'classes', _MOST_CLASSES),
        form_of(manifest, SECTION),
        manifest.stages(SECTION),
        memory,
        attributes,
        labels,
        _exits(manifest),
    )


def odds(logits: NDArray[np.floating], label: int) -> float:
    """Return how much likelier a class is than all others (J,) together: p / (1 - p) of softmax.

    It tells sure ones apart whose softmax all rounds to 1.
    """
    powers = np.exp(np.asarray(logits, float) - float(logits[label]))
    powers[label] = 0.0
    return 1.0 / max(float(powers.sum()), _TINY)


def softmax(logits: NDArray[np.floating]) -> FloatArray:
    """Return probabilities (J,) from logits (J,)."""
    powers = np.exp(np.asarray(logits, float) - np.max(logits))
    probabilities: FloatArray = powers / powers.sum()
    return probabilities


def _exits(manifest: Manifest) -> tuple[float, ...]:
    """Return the least odds of each tap, from the entry ``exits``; empty without one."""
    section = manifest.section(SECTION)
    entry = section.get('exits', [])
    most = len(section['stages']) - 1
    usable = isinstance(entry, list) and len(entry) <= most
    if not usable or not all(is_number(value, _TINY, math.inf) for value in entry):
        raise EncodingError(
            f'{manifest.path} has {SECTION}.exits {str(entry)[:80]!r}; it must list the least '
            f'odds of at most {most} taps, such as [25.1, 8.0]'
        )
    return tuple(float(value) for value in entry)


def form_of(manifest: Manifest, section: str) -> CropForm:
    """Return the form of the input, from the entry ``input`` of a section.

    :raises EncodingError: if it is none
    """
    entry = manifest.section(section).get('input')
    given = {**CropForm._field_defaults, **(entry if isinstance(entry, Mapping) else {})}
    size, mean, deviation = (_numbers(given.get(name)) for name in ('size', 'mean', 'deviation'))
    usable = (
        set(given) == set(CropForm._fields)
        and (len(size), len(mean), len(deviation)) == (2, 3, 3)
        and all(isinstance(side, int) and 1 <= side <= _LARGEST_SIDE for side in size)
        and min(deviation) > 0.0
        and is_number(given['margin'], 0.0, 1.0)
        and isinstance(given['rgb'], bool)
        and isinstance(given['square'], bool)
    )
    if not usable:
        raise EncodingError(
            f'{manifest.path} has {section}.input {str(entry)[:80]!r}; it must be like '
            '{size: [32, 48], mean: [0.5, 0.5, 0.5], deviation: [0.25, 0.25, 0.25], rgb: true, '
            'margin: 0.1, square: false}'
        )
    return CropForm(**{**given, 'size': size, 'mean': mean, 'deviation': deviation})


def _numbers(entry: Any) -> tuple[Any, ...]:
    """Return the numbers of a list, () for anything else."""
    numbers = tuple(entry) if isinstance(entry, list | tuple) else ()
    known = all(is_number(number, -_LARGEST, _LARGEST) for number in numbers)
    return numbers if known else ()
