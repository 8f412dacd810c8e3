"""A recogniser from random scenes to a copy of a bundle that holds it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from mmedge_lab.simulation.flight_folder import SIMULATOR_VERSION
from mmedge_lab.simulation.world import LABELS
from mmedge_lab.training import Report, part_of
from mmedge_lab.training.bundle_files import enter_section, file_entry, new_bundle, require_free
from mmedge_lab.training.checkpoint import work_beside, work_folder
from mmedge_lab.training.crop_set import CropSet, fitted_on, judged, learned, write_crops
from mmedge_lab.training.network_export import greatest_difference, write_graph
from mmedge_lab.training.networks.recogniser_network import RecogniserNetwork
from mmedge_lab.training.recogniser_labels import ATTRIBUTES, CLASSES, UNKNOWN, label_of
from mmedge_lab.training.recogniser_training import (
    FORM,
    RecogniserSettings,
    plain_inputs,
    recogniser_training,
)
from mmedge_lab.training.semantic_centres import fit_exits, fit_semantic_centres
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.core.plain_values import plain_values
from mmedge_ros.encoding.classifier_description import ATTRIBUTES as ATTRIBUTE_OUTPUT
from mmedge_ros.encoding.classifier_description import EXIT, FORMAT, LOGITS, SECTION
from mmedge_ros.encoding.semantic_memory import SemanticCentres, centres_as_bytes
from mmedge_ros.encoding.tapped_classifier import TappedClassifier

MEMORY_FILE = 'recogniser.npz'
_BATCH = 256
# Objects that centres are the mean of, of each class at most.
_CENTRE_OBJECTS = 800
_ERROR = 0.01
_CROPS_SHARE, _TRAINED_SHARE = 0.4, 0.95
_LARGEST_DIFFERENCE = 0.05


class Outputs(NamedTuple):
    """What a network makes of crops: a vector (N, D_l) and logits (N, J + A) of each tap."""

    vectors: list[FloatArray]
    logits: list[FloatArray]

    @property
    def whole(self) -> NDArray[np.intp]:
        """The class that the end of the network says."""
        said: NDArray[np.intp] = self.logits[-1][:, : len(CLASSES)].argmax(axis=1)
        return said


def run_recogniser(
    bundle: Path, out: Path, crops: Path, settings: RecogniserSettings, jobs: int, report: Report
) -> dict[str, Any]:
    """Train a recogniser, fit its semantic memory, and write both into a copy of a bundle.

    :param crops: folder that keeps the crops of the scenes
    :param jobs: processes to use; 0 for one per processor
    :return: its figures on scenes that it did not learn from
    :raises TrainingError: if it cannot be done
    :raises EncodingError: if the bundle cannot be used
    """
    require_free(out)
    seen = write_crops(crops, settings.scenes, jobs, part_of(report, 0.0, _CROPS_SHARE))
    with work_folder(work_beside(out)) as folder:
        training = recogniser_training(learned(seen), settings, folder)
        training.run(part_of(report, _CROPS_SHARE, _TRAINED_SHARE))
        figures = write_recogniser(training.network, seen, settings, bundle, out)
    report(1.0, 'written')
    return figures


def write_recogniser(
    network: RecogniserNetwork,
    crops: CropSet,
    settings: RecogniserSettings,
    bundle: Path,
    out: Path,
) -> dict[str, Any]:
    """Fit the semantic memory of a trained network, and write both into a copy of a bundle."""
    centres, exits = fit_memory(network, crops)
    figures = accuracy(network, judged(crops))
    with new_bundle(out, bundle) as part:
        for old in part.glob('recogniser*'):
            old.unlink()
        stages = export_recogniser(network, part)
        check_export(network, stages, judged(crops))
        (part / MEMORY_FILE).write_bytes(centres_as_bytes(centres))
        section = {
            'format': FORMAT,
            'classes': list(CLASSES),
            'labels': list(LABELS),
            'input': FORM._asdict(),
            'stages': [file_entry(path) for path in stages],
            'memory': file_entry(part / MEMORY_FILE),
            'exits': list(exits),
            'attributes': {name: list(values) for name, values in ATTRIBUTES.items()},
            'training': {
                'scenes': settings.scenes,
                'simulator': SIMULATOR_VERSION,
                'crops': len(learned(crops).crops),
                'settings': settings.plain(),
            },
            'accuracy': figures,
        }
        enter_section(part, SECTION, plain_values(section, 4))
    return figures


def outputs_of(network: RecogniserNetwork, crops: CropSet) -> Outputs:
    """Return what a network makes of crops."""
    vectors: list[list[FloatArray]] = []
    with torch.no_grad():
        for begin in range(0, len(crops.crops), _BATCH):
            inputs = plain_inputs(crops.crops[begin : begin + _BATCH])
            vectors.append([v.numpy().astype(float) for v in network.vectors(inputs)])
        joined = [np.concatenate(tap) for tap in zip(*vectors, strict=True)]
        logits = [
            head(torch.from_numpy(vector).float()).numpy().astype(float)
            for head, vector in zip(network.heads, joined, strict=True)
        ]
    return Outputs(joined, logits)


def fit_memory(
    network: RecogniserNetwork, crops: CropSet
) -> tuple[SemanticCentres, tuple[float, ...]]:
    """Fit when a network may be left: centres on what it learned from, thresholds on others.

    :return: the semantic memory, and the odds from which on the head of each tap is believed
    """
    known = _of_each_class(learned(crops))
    others = fitted_on(crops)
    centres, held = outputs_of(network, known), outputs_of(network, others)
    memory = fit_semantic_centres(
        centres.vectors[:-1],
        known.facts[:, 0].tolist(),
        held.vectors[:-1],
        others.facts[:, 0].tolist(),
        _ERROR,
        whole=held.whole.tolist(),
        # No car is brown and no dog is blue, green, red or yellow.
        classes=len(CLASSES),
    )
    heads = [logits[:, : len(CLASSES)] for logits in held.logits[:-1]]
    return memory, fit_exits(heads, held.whole, others.facts[:, 0], _ERROR)


def accuracy(network: RecogniserNetwork, crops: CropSet) -> dict[str, Any]:
    """Return the accuracy at each tap, and of the attributes at the end."""
    outputs = outputs_of(network, crops)
    truth = crops.facts[:, 0].astype(int)
    labels = np.array([label_of(name) for name in CLASSES])
    exits = []
    for logits in outputs.logits:
        said = logits[:, : len(CLASSES)].argmax(axis=1)
        exits.append(
            {
                'class': float(np.mean(said == truth)),
                'label': float(np.mean(labels[said] == labels[truth])),
            }
        )
    return {'crops': len(truth), 'exits': exits, 'attributes': _attributes(outputs, crops)}


def _attributes(outputs: Outputs, crops: CropSet) -> dict[str, float]:
    shares, begin = {}, len(CLASSES)
    for number, (name, values) in enumerate(ATTRIBUTES.items(), start=1):
        said = outputs.logits[-1][:, begin : begin + len(values)].argmax(axis=1)
        begin += len(values)
        truth = crops.facts[:, number]
        known = truth != UNKNOWN
        shares[name] = float(np.mean(said[known] == truth[known]))
    return shares


def export_recogniser(network: RecogniserNetwork, folder: Path) -> list[Path]:
    """Write ``recogniser_1.onnx`` and so on, in the order in which they run.

    :raises OSError: if a file cannot be written
    """
    whole = copy.deepcopy(network).float().eval()
    features = plain_inputs(np.zeros((1, 72, 48, 3), np.uint8))
    paths = []
    for number, stage in enumerate(whole.stages(), start=1):
        path = folder / f'recogniser_{number}.onnx'
        outputs = [f'tap_{number}', EXIT.format(number), f'features_{number}']
        if stage.is_last:
            outputs = [LOGITS, ATTRIBUTE_OUTPUT]
        made = write_graph(stage.eval(), {f'features_{number - 1}': features}, outputs, path)
        features = made[-1]
        paths.append(path)
    return paths


def check_export(network: RecogniserNetwork, stages: Sequence[Path], crops: CropSet) -> None:
    """Compare the files with the network.

    :raises TrainingError: if their logits differ by more than rounding explains
    """
    some = crops.rows(np.arange(0, len(crops.crops), max(len(crops.crops) // 50, 1)))
    classifier = TappedClassifier(CLASSES, stages)
    wanted = outputs_of(network, some).logits[-1]
    for crop, logits in zip(some.crops, wanted, strict=True):
        inputs = plain_inputs(crop[None]).numpy()
        found = classifier.network.run(inputs)
        made = np.concatenate((found[LOGITS][0], found[ATTRIBUTE_OUTPUT][0]))
        greatest_difference(logits, made, _LARGEST_DIFFERENCE, 'recogniser')


def _of_each_class(crops: CropSet) -> CropSet:
    kinds = crops.facts[:, 0]
    chosen = [np.flatnonzero(kinds == kind)[:_CENTRE_OBJECTS] for kind in range(len(CLASSES))]
    return crops.rows(np.concatenate(chosen))


def describe(figures: Mapping[str, Any]) -> str:
    """Return what was measured, in a sentence."""
    last, first = figures['exits'][-1], figures['exits'][0]
    return (
        f'on {figures["crops"]} crops of other scenes: label {last["label"]:.3f}, label and '
        f'colour {last["class"]:.3f} (at the first tap {first["class"]:.3f})'
    )
