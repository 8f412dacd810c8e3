"""Detectors of others that can be fetched, each with its source, hash and licence."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from mmedge_ros.encoding import EncodingError

_YOLOX = 'https://github.com/Megvii-BaseDetection/YOLOX'


@dataclass(frozen=True)
class KnownModel:
    """A network of other authors, trained on real pictures and given away as one ONNX file.

    ``size_bytes`` and ``sha256`` are those of the file at ``url``; anything else is refused.
    """

    name: str
    description: str
    url: str
    size_bytes: int
    sha256: str
    licence: str
    licence_url: str
    trained_on: str


KNOWN_MODELS = (
    KnownModel(
        'yolox_nano',
        'YOLOX-nano, 0.91 M parameters, 416 x 416 px, 80 classes of COCO',
        f'{_YOLOX}/releases/download/0.1.1rc0/yolox_nano.onnx',
        3_659_407,
        'c789161ed43c8269fcd4e67c67eeeb4e80c622da2eb296a20bc6007bd18a0b7d',
        'Apache-2.0, Megvii Inc.',
        f'{_YOLOX}/blob/0.1.1rc0/LICENSE',
        'COCO 2017',
    ),
    KnownModel(
        'yolox_tiny',
        'YOLOX-tiny, 5.06 M parameters, 416 x 416 px, 80 classes of COCO; better and slower',
        f'{_YOLOX}/releases/download/0.1.1rc0/yolox_tiny.onnx',
        20_219_662,
        '427cc366d34e27ff7a03e2899b5e3671425c262ea2291f88bb942bc1cc70b0f7',
        'Apache-2.0, Megvii Inc.',
        f'{_YOLOX}/blob/0.1.1rc0/LICENSE',
        'COCO 2017',
    ),
)


def find_model(name: str) -> KnownModel:
    """Return the model of a name.

    :raises EncodingError: for any other name; the message names the nearest one
    """
    models = {model.name: model for model in KNOWN_MODELS}
    if name not in models:
        nearest = difflib.get_close_matches(name, models, n=1, cutoff=0.0)[0]
        raise EncodingError(
            f'the registry has no model {name!r}; the nearest is {nearest!r}, it has '
            f'{", ".join(models)}'
        )
    return models[name]
