"""The door to ultralytics, which is licensed under AGPL-3.0; no other module imports it.

It trains networks and exports them, and is optional: it and torch are imported when one of
these functions is called and never otherwise. Nothing is downloaded or installed by it.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from mmedge_ros.encoding import EncodingError

# Into an environment of its own: ultralytics asks for another OpenCV than the one that flies.
INSTALL_LINE = './mmedge install train'
_DESIGN = Path('cfg') / 'models' / '26' / 'yolo26.yaml'
# Shares of the overlap, class and distance terms in the loss: ultralytics' own.
_LOSS_GAINS = {'box': 7.5, 'cls': 0.5, 'dfl': 1.5}


def new_network(names: Sequence[str], scale: tuple[float, float, int]) -> Any:
    """Make an untrained YOLO26, its weights drawn from torch's generator.

    It has the head that finds each object several times. The one that finds each once learns
    from it, slowly: after 20 epochs on two cores it was 5 points of average precision behind.

    :param names: of the classes
    :param scale: depth, width and the greatest number of channels
    """
    import ultralytics
    from ultralytics.nn.tasks import DetectionModel

    design = yaml.safe_load((Path(ultralytics.__file__).parent / _DESIGN).read_bytes())
    design |= {'nc': len(names), 'scales': {'n': list(scale)}, 'scale': 'n', 'end2end': False}
    network = DetectionModel(design, ch=3, nc=len(names), verbose=False)
    network.names = dict(enumerate(names))
    return network


def detection_loss(network: Any, class_loss: Callable[[Any, Any], Any]) -> Any:
    """Return ultralytics' loss for a network of ``new_network``.

    :param class_loss: of logits and targets, both (B, cells, classes), to losses of that shape
    """
    network.args = SimpleNamespace(**_LOSS_GAINS)
    loss = network.init_criterion()
    loss.bce = class_loss
    return loss


def ultralytics_version() -> str:
    """Return the version that is installed."""
    import ultralytics

    return str(ultralytics.__version__)


def load_network(weights: Path) -> Any:
    """Open ``.pt`` weights of a detection network; whatever code is in the file is run.

    :raises EncodingError: if the file is none
    """
    import ultralytics

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


def import_libraries(
    writable: Path,
    need: str = '.pt weights need ultralytics (licensed AGPL-3.0) to be exported',
    remedy: str = f'run `{INSTALL_LINE}`, then this again; or name an .onnx file instead',
) -> tuple[Any, Any, Any]:
    """Import torch, ultralytics and onnx; nothing is downloaded or installed by them.

    :param writable: where ultralytics may put its settings
    :param need: what needs them, for the message
    :raises EncodingError: if one is missing
    """
    for name, value in (
        ('YOLO_OFFLINE', '1'),
        ('YOLO_AUTOINSTALL', '0'),
        ('YOLO_VERBOSE', 'false'),
        ('YOLO_CONFIG_DIR', str(writable)),
    ):
        os.environ.setdefault(name, value)
    try:
        import torch

        declare_torchvision_operators()
        import onnx
        import ultralytics
    except ImportError as err:
        raise EncodingError(f'{need}, and {err.name} is missing ({err}); {remedy}') from err
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

    spec = importlib.util.find_spec('torchvision')
    if spec is None or not spec.submodule_search_locations:
        raise ImportError('torchvision is not installed', name='torchvision')
    folder = Path(next(iter(spec.submodule_search_locations)))
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
