"""Exports networks of ultralytics to ONNX; ``.pt`` weights once, into a cache.

A ``.pt`` file is a pickle and can run any code when it is loaded. So it is loaded only where the
user says that it is trusted; the export that is kept of it runs none.

The exported graph has three outputs: ``detections`` as the network's head makes them,
``grid`` (1, C, H, W), the feature map at stride 16 that the head reads, and ``embedding``
(1, E), the spatial means of the feature maps of all strides side by side.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mmedge_ros.encoding import EncodingError
from mmedge_ros.encoding.bundle.weights import cache_folder, require_weights, sha256_of
from mmedge_ros.encoding.ultralytics_network import INSTALL_LINE, import_libraries, load_network

# Raise it when the exported graph changes, so that older exports are not taken for it.
_GRAPH_VERSION = 1
_OPSET = 17
_GRID_STRIDE = 16

Exporter = Callable[[Path, Path, tuple[int, int]], None]


def exported_onnx(
    weights: Path,
    input_size: tuple[int, int],
    cache: Path | None = None,
    exporter: Exporter | None = None,
    *,
    trusted: bool = False,
) -> Path:
    """Return the ONNX file for ``.pt`` weights, made at the first call for their content.

    Of several processes that call it at once, one exports and the others wait for it (one export
    at a time: it takes about 1 GB of memory).

    :param input_size: width and height in pixels, multiples of 32
    :param cache: folder for exports, default ``weights.cache_folder()``
    :param exporter: writes (weights, onnx file, input size); default by ultralytics
    :param trusted: whether the code in the file may be run
    :raises EncodingError: if it would have to be loaded and is not trusted, ultralytics is
        missing, the file is not its detection network, or the cache cannot be written
    """
    width, height = input_size
    if width % 32 or height % 32 or width < 32 or height < 32:
        raise EncodingError(
            f'an input of {width} x {height} px does not suit a YOLO network; '
            'input_width and input_height must be multiples of 32'
        )
    digest = sha256_of(require_weights(weights))
    folder = cache_folder() if cache is None else cache
    target = folder / f'{digest[:32]}-{width}x{height}-v{_GRAPH_VERSION}.onnx'
    try:
        if target.is_file():
            return target
        if not trusted:
            raise EncodingError(
                f'{weights} is not loaded: a .pt file runs whatever code is in it. If you trust '
                'where it comes from, add --trust-weights (trust_weights:=true to a launch file)'
            )
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder / 'export.lock'):
            if not target.is_file():
                _export(weights, target, input_size, exporter or _usual_exporter())
    except OSError as err:
        raise EncodingError(
            f'the export of {weights} cannot be kept in {folder}: {err.strerror or err}; make it '
            'writable, or set XDG_CACHE_HOME to a folder that is'
        ) from err
    return target


def _export(weights: Path, target: Path, size: tuple[int, int], exporter: Exporter) -> None:
    """Write beside the target and move it there whole: a killed export leaves no half file."""
    partial = target.with_suffix('.partial')
    try:
        exporter(weights, partial, size)
        with partial.open('rb') as file:
            os.fsync(file.fileno())  # a drone's power may go at any time
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock between processes; the system frees it when its holder dies."""
    with path.open('w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _usual_exporter() -> Exporter:
    """Return what exports here, or where `./mmedge install train` has put torch."""
    is_elsewhere = importlib.util.find_spec('torch') is None and training_python().is_file()
    return _export_elsewhere if is_elsewhere else export_with_ultralytics


def training_python() -> Path:
    """Return the interpreter of the environment for trainings beside this one."""
    return Path(sys.prefix).with_name('.venv-train') / 'bin' / 'python'


def _export_elsewhere(weights: Path, target: Path, input_size: tuple[int, int]) -> None:
    """Do what ``export_with_ultralytics`` does, in the environment for trainings."""
    sources = str(Path(__file__).resolve().parents[2])
    command = [str(training_python()), '-P', '-m', __name__, str(weights.absolute()), str(target)]
    done = subprocess.run(
        [*command, *map(str, input_size)],
        env={**os.environ, 'PYTHONPATH': sources},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ['it said nothing'])[-1]
        raise EncodingError(last if str(weights) in last else f'{weights}: {last}')


def export_with_ultralytics(weights: Path, target: Path, input_size: tuple[int, int]) -> None:
    """Write the ONNX graph of a detection network, with features and metadata.

    :raises EncodingError: if a library is missing or the file is not such a network
    """
    # ultralytics talks on standard output, which belongs to results here.
    with contextlib.redirect_stdout(sys.stderr):
        torch, ultralytics, _ = import_libraries(target.parent)
        network = load_network(weights)
        if getattr(network.model[-1], 'one2one_cv2', None) is not None:
            network.end2end = True  # YOLO26, YOLOv10: boxes that need no suppression
        try:
            write_onnx(network, target, input_size)
        except (RuntimeError, ValueError, TypeError, LookupError, AttributeError) as err:
            raise EncodingError(
                f'{weights} cannot be exported with ultralytics {ultralytics.__version__} and '
                f'torch {torch.__version__}: {str(err)[:300]}; known to work is: {INSTALL_LINE}'
            ) from err


def write_onnx(network: Any, target: Path, input_size: tuple[int, int]) -> None:
    """Write a loaded network as it stands; it is fused on the way and cannot be trained on.

    :raises OSError: if the file cannot be written
    """
    torch, _, onnx = import_libraries(target.parent)
    _write_graph(torch, network, target, input_size)
    graph = onnx.load(str(target))
    for key, value in _metadata(network, input_size).items():
        graph.metadata_props.add(key=key, value=value)
    onnx.save(graph, str(target))


def _write_graph(torch: Any, network: Any, target: Path, input_size: tuple[int, int]) -> None:
    width, height = input_size
    fused = network.fuse(verbose=False)
    with torch.no_grad():
        torch.onnx.export(
            _with_features(torch, fused).eval(),
            (torch.zeros(1, 3, height, width),),
            str(target),
            opset_version=_OPSET,
            input_names=['images'],
            output_names=['detections', 'grid', 'embedding'],
            dynamo=False,
        )


def _with_features(torch: Any, network: Any) -> Any:
    """Wrap a network so that one forward pass yields detections, grid and embedding."""
    strides = [int(stride) for stride in network.stride]
    level = strides.index(_GRID_STRIDE)

    class DetectionsAndFeatures(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, picture: Any) -> tuple[Any, Any, Any]:
            detections, raw = self.network(picture)
            features = (raw.get('one2one') or raw)['feats']
            means = [feature.mean(dim=(2, 3)) for feature in features]
            return detections, features[level], torch.cat(means, dim=1)

    return DetectionsAndFeatures()


def _metadata(network: Any, input_size: tuple[int, int]) -> dict[str, str]:
    """Return the entries ultralytics' own exports have, as far as they are read here."""
    return {
        'task': 'detect',
        'names': str(dict(network.names)),
        'imgsz': str([input_size[1], input_size[0]]),
        'end2end': str(bool(getattr(network, 'end2end', False))),
        'head': type(network.model[-1]).__name__,
        'license': 'AGPL-3.0 (https://ultralytics.com/license)',
    }


if __name__ == '__main__':
    try:
        file, made, width, height = sys.argv[1:]
        export_with_ultralytics(Path(file), Path(made), (int(width), int(height)))
    except EncodingError as error:
        sys.exit(str(error))
