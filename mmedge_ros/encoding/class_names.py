"""The names of the classes a network knows."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from mmedge_ros.encoding import EncodingError

# The 80 classes of COCO (Lin et al. 2014) in the order detectors are trained with.
COCO = (
    'person', 'bicycle', 'car', 'motorcycle', 'airplane', 'bus', 'train', 'truck', 'boat',
    'traffic light', 'fire hydrant', 'stop sign', 'parking meter', 'bench', 'bird', 'cat',
    'dog', 'horse', 'sheep', 'cow', 'elephant', 'bear', 'zebra', 'giraffe', 'backpack',
    'umbrella', 'handbag', 'tie', 'suitcase', 'frisbee', 'skis', 'snowboard', 'sports ball',
    'kite', 'baseball bat', 'baseball glove', 'skateboard', 'surfboard', 'tennis racket',
    'bottle', 'wine glass', 'cup', 'fork', 'knife', 'spoon', 'bowl', 'banana', 'apple',
    'sandwich', 'orange', 'broccoli', 'carrot', 'hot dog', 'pizza', 'donut', 'cake', 'chair',
    'couch', 'potted plant', 'bed', 'dining table', 'toilet', 'tv', 'laptop', 'mouse',
    'remote', 'keyboard', 'cell phone', 'microwave', 'oven', 'toaster', 'sink',
    'refrigerator', 'book', 'clock', 'vase', 'scissors', 'teddy bear', 'hair drier',
    'toothbrush',
)  # fmt: skip


def class_names(metadata: Mapping[str, str], classes: int | None, place: str) -> tuple[str, ...]:
    """Return one name per class, in the network's order.

    They come from the file's metadata entry ``names``. Without it 80 classes (or a number
    the shape does not tell, ``None``) are COCO's, others are class0, class1...

    :param place: names the file in messages
    :raises EncodingError: if the metadata cannot be read or has another number of names
    """
    if 'names' not in metadata:
        if classes is None or classes == len(COCO):
            return COCO
        return tuple(f'class{index}' for index in range(classes))
    names = _parse(metadata['names'], place)
    if classes is not None and len(names) != classes:
        raise EncodingError(
            f'{place} names {len(names)} classes in its metadata but puts out {classes}; '
            'export it again'
        )
    return names


def _parse(text: str, place: str) -> tuple[str, ...]:
    """Read a list of names, or a mapping of index to name as ultralytics writes it."""
    try:
        value = ast.literal_eval(text)
        if isinstance(value, Mapping):
            by_index = {int(index): name for index, name in value.items()}
            value = [by_index[index] for index in range(len(by_index))]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as err:
        raise EncodingError(
            f'{place} has class names in its metadata that cannot be read ({text[:60]!r}); '
            'they must look like {0: "person"}'
        ) from err
    names_are_text = isinstance(value, list | tuple) and all(isinstance(n, str) for n in value)
    if not names_are_text or not value:
        raise EncodingError(
            f'{place} has class names in its metadata that are no list of texts '
            f'({text[:60]!r}); they must look like {{0: "person"}}'
        )
    return tuple(value)
