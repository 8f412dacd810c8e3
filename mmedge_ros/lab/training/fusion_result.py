"""A trained fusion network becomes a bundle that was checked and judged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mmedge_ros.encoding.bundle.model_bundle import FUSION_FORMAT, FUSION_PARTS, load_bundle
from mmedge_ros.lab.training import TrainingError
from mmedge_ros.lab.training.detector_session import library_versions
from mmedge_ros.lab.training.fusion_bundle import (
    common_entries,
    data_facts,
    file_entry,
    finish_bundle,
    new_folder,
    training_entries,
    write_manifest,
)
from mmedge_ros.lab.training.fusion_settings import FusionSettings
from mmedge_ros.lab.training.fusion_training import run_network
from mmedge_ros.lab.training.networks.export import export_fusion
from mmedge_ros.lab.training.shared_features import Features
from mmedge_ros.lab.training.teacher import Teacher
from mmedge_ros.lab.training.trained_detectors import TrainedDetector
from mmedge_ros.lab.training.window_judging import Judgement, judge
from mmedge_ros.lab.training.window_set import Configuration, WindowSet

VALIDATION = 'validation'
# What is judged: everything, the least of it, and one sensor alone.
_CONFIGURATIONS = {
    'full': Configuration(),
    'least': Configuration(10.0, 'small', 5.0, 'small'),
}
_JUDGED = 500

Progress = Callable[[float, str], None]


class FusionResult(NamedTuple):
    """A network with all that its bundle says of it; ``facts`` are those of its training."""

    network: Any
    settings: FusionSettings
    features: Features
    facts: Mapping[str, Any]
    detectors: Mapping[str, TrainedDetector]
    teacher: Teacher | None = None

    def write(
        self, part: Path, folder: Path, windows: Mapping[str, WindowSet], report: Progress
    ) -> dict[str, Any]:
        """Export, judge, and put the bundle into ``folder``, where it comes into being whole.

        A network that sees windows as a whole cannot fly: its bundle has no fusion, only the
        figures.

        :param part: folder to write it in first, on the same disk
        :param windows: by set, the one that was learned from under ''
        :return: the figures by set
        :raises TrainingError: if an exported file does not do what the network does
        :raises OSError: if it cannot be written
        """
        new_folder(part)
        content: dict[str, Any] = common_entries(self.features.described)
        content |= self._encoders(part)
        report(0.0, 'judging')
        metrics, threshold = self._judged(windows, report)
        if not self.settings.whole_window:
            check = export_fusion(self.network, part)
            entries = {name: file_entry(part / f'{name}.onnx') for name in FUSION_PARTS}
            content['fusion'] = {'format': FUSION_FORMAT, **entries, 'threshold': threshold}
            content['export'] = {k: float(v) for k, v in check._asdict().items()}
        content['metrics'] = metrics
        data = data_facts(self.features.described, self.teacher)
        content |= training_entries(
            self.settings, self._origins(), data, self.facts, library_versions(_device())
        )
        write_manifest(part, folder.name, content)
        if load_bundle(part).has_fusion == self.settings.whole_window:
            raise TrainingError(f'the bundle in {part} lacks what it should have; train it anew')
        finish_bundle(part, folder)
        return metrics

    def _encoders(self, part: Path) -> dict[str, Any]:
        parts = self.features.parts
        for path in sorted(parts.folder.glob('*.onnx')):
            shutil.copyfile(path, part / path.name)
        kept = ('camera', 'radar', 'grid', 'labels', 'encoders')
        content = {name: parts.content[name] for name in kept}
        entries: dict[str, Any] = {}
        for kind, path in self.features.embeddings.items():
            shutil.copyfile(path, part / path.name)
            entries[kind] = file_entry(part / path.name)
        content['embedding'] = {**entries, 'auc': self.features.embedding_facts}
        return content

    def _judged(
        self, windows: Mapping[str, WindowSet], report: Progress
    ) -> tuple[dict[str, Any], float]:
        """Return the figures by set, and the threshold that is best on the first of them."""
        # Where nothing else is there, the flights that were learned from have to do.
        sets = {name: found for name, found in windows.items() if name} or {'train': windows['']}
        order = sorted(sets, key=lambda name: name != VALIDATION)
        metrics: dict[str, Any] = {}
        threshold = 0.0
        for place, name in enumerate(order):
            figures: dict[str, Any] = {}
            for what, configuration in _CONFIGURATIONS.items():
                report((place + 0.5 * len(figures)) / len(order), f'judging on {name}')
                fused, alone = self._compared(sets[name], configuration)
                threshold = threshold or fused.best().threshold
                figures[what] = {
                    'fused': fused.at(threshold).plain(),
                    'newest_picture': alone.at(threshold).plain(),
                    'newest_picture_at_its_best': alone.best().plain(),
                }
            windows_judged = len(sets[name].spread(_JUDGED, Configuration()))
            metrics[name] = {'windows': windows_judged, **figures}
        return metrics, threshold

    def _compared(
        self, windows: WindowSet, configuration: Configuration
    ) -> tuple[Judgement, Judgement]:
        chosen = windows.spread(_JUDGED, configuration)
        return judge(windows, chosen, lambda batch: run_network(self.network, batch))

    def _origins(self) -> dict[str, Any]:
        return {
            name: {'sha256': d.digest, 'epochs': d.epoch, 'settings': d.settings}
            for name, d in self.detectors.items()
        }


def _device() -> str:
    import torch

    return 'cuda' if torch.cuda.is_available() else 'cpu'
