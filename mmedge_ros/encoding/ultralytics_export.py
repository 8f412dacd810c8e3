"""Exports ultralytics ``.pt`` weights to ONNX, once; the only module that knows ultralytics.

ultralytics is licensed under AGPL-3.0 and optional: it and torch are imported when an export
is needed and never otherwise. A ``.pt`` file is a pickle and can run any code when it is
loaded: open only weights you trust.

The exported graph has three outputs: ``detections`` as the network's head makes them,
``grid`` (1, C, H, W), the feature map at stride 16 that the head reads, and ``embedding``
(1, E), the spatial means of the feature maps of all strides side by side.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mmedge_ros.encoding.detector import EncodingError
from mmedge_ros.encoding.weights import cache_folder, require_weights, sha256_of

INSTALL_LINE = 'pip install torch==2.13.0 torchvision==0.28.0 ultralytics==8.4.190 onnx==1.23.2'
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
) -> Path:
    """Return the ONNX file for ``.pt`` weights, made at the first call for their content.

    Of several processes that ask at once, one exports and the others wait for it (one export
    at a time: it takes about 1 GB of memory).

    :param input_size: width and height in pixels, multiples of 32
    :param cache: folder for exports, default ``weights.cache_folder()``
    :param exporter: writes (weights, onnx file, input size); default by ultralytics
    :raises EncodingError: if ultralytics is missing, the file is not its detection network,
        or the cache cannot be written
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
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder / 'export.lock'):
            if not target.is_file():
                _export(weights, target, input_size, exporter or export_with_ultralytics)
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


def export_with_ultralytics(weights: Path, target: Path, input_size: tuple[int, int]) -> None:
    """Write the ONNX graph of a detection network, with features and metadata.

    :raises EncodingError: if a library is missing or the file is not such a network
    """
    # ultralytics talks on standard output, which belongs to results here.
    with contextlib.redirect_stdout(sys.stderr):
        torch, ultralytics, onnx = _libraries(target.parent)
        network = _load(ultralytics, weights)
        try:
            _write_graph(torch, network, target, input_size)
            graph = onnx.load(str(target))
            for key, value in _metadata(network, input_size).items():
                graph.metadata_props.add(key=key, value=value)
            onnx.save(graph, str(target))
        except (RuntimeError, ValueError, TypeError, LookupError, AttributeError) as err:
            raise EncodingError(
                f'{weights} cannot be exported with ultralytics {ultralytics.__version__} and '
                f'torch {torch.__version__}: {str(err)[:300]}; known to work is: {INSTALL_LINE}'
            ) from err


def _load(ultralytics: Any, weights: Path) -> Any:
    remedy = 'it must be the .pt file of an ultralytics detection network'
    try:
        model = ultralytics.YOLO(str(weights))
        task = str(model.task)
        network = model.model.float().eval() if task == 'detect' else None
    except Exception as err:  # unpickling runs, and raises, whatever is in the file
        raise EncodingError(
            f'{weights} cannot be loaded by ultralytics {ultralytics.__version__} '
            f'({type(err).__name__}: {str(err)[:300]}); {remedy}'
        ) from err
    if network is None:
        raise EncodingError(f'{weights} is made for {task!r}; {remedy}')
    return network


def _write_graph(torch: Any, network: Any, target: Path, input_size: tuple[int, int]) -> None:
    width, height = input_size
    if getattr(network.model[-1], 'one2one_cv2', None) is not None:
        network.end2end = True  # YOLO26, YOLOv10: boxes that need no suppression
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


def _libraries(writable: Path) -> tuple[Any, Any, Any]:
    """Import torch, ultralytics and onnx; nothing is downloaded or installed by them."""
    os.environ.setdefault('YOLO_OFFLINE', '1')
    os.environ.setdefault('YOLO_AUTOINSTALL', '0')
    os.environ.setdefault('YOLO_CONFIG_DIR', str(writable))
    try:
        import torch

        declare_torchvision_operators()
        import onnx
        import ultralytics
    except ImportError as err:
        raise EncodingError(
            f'.pt weights need ultralytics (licensed AGPL-3.0) to be exported, and {err.name} is '
            f'missing ({err}); either `{INSTALL_LINE}` or name an .onnx file instead'
        ) from err
    return torch, ultralytics, onnx


def declare_torchvision_operators() -> None:
    """Make ``import torchvision`` work where its native library does not fit the torch here.

    The wheels on PyPI are linked to CUDA; beside a CPU torch their library does not load, and
    the import, which ultralytics does unconditionally, fails for want of two operators. They
    are declared here, nms with an implementation on the CPU. Does nothing where the library
    loads. Must come before the first import of torchvision or ultralytics.

    :raises ImportError: if torch or torchvision is not installed
    """
    import torch

    found = importlib.util.find_spec('torchvision')
    if found is None or not found.submodule_search_locations:
        raise ImportError('torchvision is not installed', name='torchvision')
    folder = Path(next(iter(found.submodule_search_locations)))
    if _loads(torch, folder) or hasattr(torch.ops.torchvision, 'nms'):
        return
    library = torch.library.Library('torchvision', 'DEF')
    library.define('nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')
    library.define('qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor')
    library.impl('nms', _nms, 'CPU')
    _declared.append(library)  # the operators live as long as the library object
    import torchvision

    torchvision.ops.nms = _nms
    torchvision.ops.boxes.nms = _nms


_declared: list[Any] = []


def _loads(torch: Any, folder: Path) -> bool:
    for path in folder.glob('_C*.so'):
        try:
            torch.ops.load_library(str(path))
        except OSError:
            continue
        return True
    return False


def _nms(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """torchvision.ops.nms: (N, 4) x0, y0, x1, y1 and (N,) to kept indices, best first."""
    import cv2
    import torch

    if len(boxes) == 0:
        return torch.zeros(0, dtype=torch.int64, device=boxes.device)
    corners = boxes.detach().cpu().double()
    corners[:, 2:] -= corners[:, :2]
    ranks = (scores.double() - scores.double().min() + 1.0).tolist()  # all above zero
    kept = cv2.dnn.NMSBoxes(corners.tolist(), ranks, 0.0, iou_threshold)
    return torch.as_tensor(kept, dtype=torch.int64, device=boxes.device).reshape(-1)
