"""Model bundles: a folder that names the networks of each level, with their hashes.

``manifest.yaml``::

    name: drone_people
    domain: simulated
    camera:
      default: small
      levels:
        small: {weights: small.onnx, sha256: 5f70bf18a086..., bytes: 812345}
        medium:
          stages:
            - {weights: medium_1.onnx, sha256: 3e23e8160039...}
            - {weights: medium_2.onnx, sha256: 2c624232cc60...}
    radar: {default: small, levels: {small: {weights: radar.onnx, sha256: 19581e27de7c...}}}
    grid: {format: 1}
    embedding: {camera: {weights: ...}, radar: {weights: ...}}
    fusion: {format: 2, project_camera: {...}, ..., fuse: {...}, threshold: 0.2}
    gate: {network: {weights: ...}, ...}

A level is one graph or a list of stages that run one after another (tapped_network). ``bytes``,
``domain`` (what the pictures it was trained on are: real or simulated) and all that follows
``camera`` are optional; ``grid`` says that all levels put out feature grids (feature_grid),
which embedding and fusion need. Of ``gate`` only the file is known here (`windows.bundle_gate`
reads the rest); entries this module does not know (metrics, profiles) are left to others.
``labels`` of a level, such as {pedestrian: person}, renames classes of its network.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.manifest import BundleFile, Levels, Manifest, joint_precision
from mmedge_ros.encoding.bundle.weights import require_weights
from mmedge_ros.encoding.class_words import LABEL_OF
from mmedge_ros.encoding.detector import Detector, DetectorParameters
from mmedge_ros.encoding.feature_grid import CAMERA_GRID, GRID_FORMAT
from mmedge_ros.encoding.onnx_detector import DEFAULT_INPUT_SIZE, OnnxDetector
from mmedge_ros.encoding.tiled_detector import TiledDetector
from mmedge_ros.encoding.ultralytics_export import exported_onnx

REAL, SIMULATED, BOTH = 'real', 'simulated', 'real and simulated'
# Rises when the networks of a fusion are cut in another way; those of format 1 were steps.
FUSION_FORMAT = 2
_OTHER_FUSION = (
    'train it again (`mmedge lab train fusion`), use a bundle that ships with it, or remove the '
    'fusion section to fuse decisions'
)
FUSION_PARTS = (
    'project_camera',
    'change_camera_1',
    'change_camera_2',
    'project_radar',
    'change_radar_1',
    'change_radar_2',
    'fuse',
)


@dataclass(frozen=True)
class ModelBundle:
    """What a manifest says; files are checked when they are used.

    ``domain`` is real, simulated, or '' where the manifest has no word; ``content`` is all of
    the manifest. ``has_grid`` says that all levels put out feature grids. ``fusion_threshold``
    is the score below which fused detections are not worth reading (0 without fusion).
    """

    name: str
    folder: Path
    camera: Levels
    radar: Levels = field(default_factory=Levels)
    embeddings: Mapping[str, BundleFile] = field(default_factory=dict)
    fusion: Mapping[str, BundleFile] = field(default_factory=dict)
    fusion_threshold: float = 0.0
    gate: BundleFile | None = None
    has_grid: bool = False
    domain: str = ''
    content: Mapping[str, Any] = field(default_factory=dict)

    @property
    def levels(self) -> tuple[str, ...]:
        return tuple(self.camera.stages)

    @property
    def default(self) -> str:
        return self.camera.default

    @property
    def radar_levels(self) -> tuple[str, ...]:
        return tuple(self.radar.stages)

    @property
    def has_fusion(self) -> bool:
        return bool(self.fusion)

    @property
    def fuses_better(self) -> bool:
        """Whether it has fusion networks that were not measured to be no better than rules.

        Where their gain was measured, its interval (`accuracy.fusion_gain.low`) must exclude zero.
        """
        accuracy = self.content.get('accuracy')
        gain = accuracy.get('fusion_gain') if isinstance(accuracy, Mapping) else None
        low = gain.get('low') if isinstance(gain, Mapping) else None
        return self.has_fusion and (not isinstance(low, int | float) or low > 0.0)

    def of(self, modality: str) -> Levels:
        """Return the levels of camera or radar."""
        return self.radar if modality == RADAR else self.camera

    def entries(self, level: str = '', modality: str = CAMERA) -> tuple[BundleFile, ...]:
        """Return what the manifest says of a level's stages; '' is the default level.

        :raises EncodingError: for an unknown level
        """
        levels = self.of(modality)
        chosen = level or levels.default
        if chosen not in levels.stages:
            known = 'it has none'
            for near in difflib.get_close_matches(chosen, levels.stages, n=1, cutoff=0.0):
                known = f'the nearest is {near!r}, it has {", ".join(levels.stages)}'
            what = 'level' if modality == CAMERA else f'{modality} level'
            raise EncodingError(
                f'bundle {self.name!r} in {self.folder} has no {what} {chosen!r}; {known}'
            )
        return levels.stages[chosen]

    def camera_stages(self, level: str = '') -> tuple[Path, ...]:
        """Return the verified files of a camera level, one where it is one graph.

        :raises EncodingError: for an unknown level, or a file that is not the manifest's
        """
        return tuple(entry.verified() for entry in self.entries(level))

    def radar_stages(self, level: str = '') -> tuple[Path, ...]:
        """Return the verified files of a radar level; errors as for ``camera_stages``."""
        return tuple(entry.verified() for entry in self.entries(level, RADAR))

    def embedding(self, modality: str) -> Path | None:
        """Return the verified network that makes embeddings of grids, None if there is none.

        :raises EncodingError: if the file is not the manifest's
        """
        entry = self.embeddings.get(modality)
        return entry.verified() if entry else None

    def fusion_part(self, part: str) -> Path:
        """Return a verified network of the fusion, one of FUSION_PARTS.

        :raises EncodingError: if there is no fusion, or the file is not the manifest's
        """
        if part not in self.fusion:
            raise EncodingError(
                f'bundle {self.name!r} in {self.folder} has no fusion part {part!r}; '
                f'it has {", ".join(self.fusion) or "none: use one with a fusion section"}'
            )
        return self.fusion[part].verified()

    def files(self) -> Iterator[BundleFile]:
        for levels in (self.camera, self.radar):
            for stages in levels.stages.values():
                yield from stages
        yield from self.embeddings.values()
        yield from self.fusion.values()
        if self.gate is not None:
            yield self.gate


def load_bundle(folder: Path) -> ModelBundle:
    """Read the manifest of a bundle.

    :raises EncodingError: if it is missing or malformed; the message names the entry
    """
    manifest = Manifest(folder)
    has_grid = manifest.has('grid')
    if has_grid:
        manifest.section_of_format('grid', GRID_FORMAT, 'use a bundle that was made for it')
    camera = manifest.levels(CAMERA)
    radar = manifest.levels(RADAR) if manifest.has(RADAR) else Levels()
    for name in ('embedding', 'fusion'):
        if manifest.has(name) and not has_grid:
            raise EncodingError(
                f'{manifest.path} has {name}, but no grid that it could read; add '
                f'grid: {{format: {GRID_FORMAT}}} if its levels put out feature grids'
            )
    embeddings, fusion, threshold = {}, {}, 0.0
    if manifest.has('embedding'):
        named = manifest.section('embedding')
        embeddings = {m: manifest.file('embedding', m) for m in (CAMERA, RADAR) if m in named}
    if manifest.has('fusion'):
        manifest.section_of_format('fusion', FUSION_FORMAT, _OTHER_FUSION)
        fusion = {part: manifest.file('fusion', part) for part in FUSION_PARTS}
        threshold = manifest.share('fusion', 'threshold')
    return ModelBundle(
        manifest.text('name'),
        folder,
        camera,
        radar,
        embeddings=embeddings,
        fusion=fusion,
        fusion_threshold=threshold,
        gate=manifest.file('gate', 'network') if manifest.has('gate') else None,
        has_grid=has_grid,
        domain=domain_of(manifest),
        content=manifest.content,
    )


def model_levels(path: Path, modality: str = CAMERA) -> tuple[tuple[str, ...], str]:
    """Return the levels that a bundle has of a modality, and its default one.

    A plain weight file has none of its own, () and '': it serves every level of the camera.

    :raises EncodingError: if the manifest cannot be read
    """
    if not is_bundle(path):
        return (), ''
    levels = load_bundle(path).of(modality)
    return tuple(levels.stages), levels.default


def level_precisions(path: Path, modality: str = CAMERA) -> dict[str, str]:
    """Return the precision of each level of a bundle, `mixed` where its stages differ.

    :return: {} for a plain weight file
    :raises EncodingError: if the manifest cannot be read
    """
    if not is_bundle(path):
        return {}
    stages = load_bundle(path).of(modality).stages
    return {level: joint_precision(files) for level, files in stages.items()}


def can_fuse(path: Path) -> bool:
    """Whether this is a bundle with networks that fuse the grids of its encoders.

    :raises EncodingError: if the manifest cannot be read
    """
    return is_bundle(path) and load_bundle(path).has_fusion


def domain_warning(path: Path, source_is_simulated: bool, above: bool = True) -> str:
    """Return a sentence if a detector has seen no real pictures, or few such as these.

    :param path: bundle folder or weight file; of the latter it is not known
    :param above: a drone in flight takes them, or it is not known
    :return: '' if there is nothing to warn of
    :raises EncodingError: if a bundle's manifest cannot be read
    """
    if source_is_simulated or not is_bundle(path):
        return ''
    bundle = load_bundle(path)
    if bundle.domain != SIMULATED:
        if above or SIMULATED not in bundle.domain:
            return ''
        return (
            f'the detector {bundle.name!r} has seen few real people at eye level: expect it to '
            'miss many. `mmedge model fetch yolox_nano` brings one that finds more there'
        )
    return (
        f'the detector {bundle.name!r} has only ever seen simulated people, and these pictures '
        'come from a real camera: expect it to miss people and to see some where there are '
        'none. `mmedge model fetch yolox_nano` brings one for real people'
    )


def detector_words(path: Path) -> str:
    """Name a detector, and what pictures it has learned from.

    :param path: bundle folder or weight file, of which the latter is not known
    :raises EncodingError: if a bundle's manifest cannot be read
    """
    domain = load_bundle(path).domain if is_bundle(path) else ''
    if not domain:
        return f'{path.name}, and what it learned from is not known'
    return f'{path.name}, which learned from {domain} pictures'


def open_detector(
    path: Path,
    parameters: DetectorParameters | None = None,
    level: str = '',
    device: str = 'cpu',
) -> Detector:
    """Open the network of a level, from a bundle folder or a plain .onnx or .pt file.

    A plain file serves every level; its pedestrians are persons here (`class_words`), but for
    labels that are asked for. A .pt file is exported first, once (ultralytics_export).

    :param device: cpu, cuda, tensorrt or openvino
    :raises EncodingError: if that is not possible; the message names the file and the remedy
    """
    parameters = parameters or DetectorParameters()
    if not is_bundle(path):
        asked = parameters.labels
        renamed = {word: label for word, label in LABEL_OF.items() if word not in asked}
        network = _as_onnx(require_weights(path), parameters)
        return OnnxDetector(network, parameters, device, labels=renamed)
    bundle = load_bundle(path)
    stages = [_as_onnx(stage, parameters) for stage in bundle.camera_stages(level)]
    grid = CAMERA_GRID if bundle.has_grid else None
    labels = bundle.camera.labels.get(level or bundle.default)
    tiled = (level or bundle.default) in bundle.camera.tiled
    if tiled and grid:
        raise EncodingError(
            f'{path} puts out feature grids, which two halves do not have; take `tiles` out of '
            'its manifest'
        )
    detector = OnnxDetector(stages, parameters, device, grid, bundle.embedding(CAMERA), labels)
    return TiledDetector(detector, parameters.maximum_detections) if tiled else detector


def export_trusted(path: Path, parameters: DetectorParameters) -> None:
    """Export .pt weights for those who open them after; other files are left alone.

    :raises EncodingError: if that is not possible
    """
    _as_onnx(path, replace(parameters, trust_weights=True))


def is_bundle(path: Path) -> bool:
    """Tell a bundle folder from what may be a weight file."""
    try:
        return path.is_dir()
    except OSError:
        return False  # require_weights says what is wrong with it


def _as_onnx(weights: Path, parameters: DetectorParameters) -> Path:
    if weights.suffix.lower() != '.pt':
        return weights
    width = parameters.input_width or DEFAULT_INPUT_SIZE[0]
    height = parameters.input_height or DEFAULT_INPUT_SIZE[1]
    return exported_onnx(weights, (width, height), trusted=parameters.trust_weights)


def domain_of(manifest: Manifest) -> str:
    """Return what pictures the networks of a manifest were trained on; '' where it has no word.

    :raises EncodingError: if it says something else
    """
    domain = manifest.text('domain') if manifest.has('domain') else ''
    if domain not in ('', REAL, SIMULATED, BOTH):
        raise EncodingError(
            f'{manifest.path} has domain {domain!r}; it must be {REAL!r}, {SIMULATED!r} or '
            f'{BOTH!r}, as the pictures it was trained on were'
        )
    return domain
