"""Pictures that a searcher brings along: "more like this one"."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np

from mmedge_ros.encoding.detector import Image
from mmedge_ros.flight_memory import FlightMemoryError
from mmedge_ros.flight_memory.memory_encoder import MemoryEncoder
from mmedge_ros.flight_memory.moment import Vectors
from mmedge_ros.flight_memory.scorers import bundle_of
from mmedge_ros.flight_memory.store_file import StoreHeader
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import quick_format
from mmedge_ros.untrusted_files import read_bounded

LARGEST_EXAMPLE = 20 << 20  # bytes
_REMEDY = 'name a jpg or png file that shows the object and little else'


def example_vectors(
    path: Path, headers: Iterable[StoreHeader], bundles: Iterable[Path]
) -> Vectors:
    """Return the embedding (1, D) of the object that fills a picture.

    :param headers: those of the memories that are to be searched
    :param bundles: where the bundle that made them may be
    :raises FlightMemoryError: if the file is no picture, or memories are of different bundles
    :raises EncodingError: if the bundle cannot be used
    """
    picture = _picture(path)
    kinds = set(headers)
    if len(kinds) != 1:
        raise FlightMemoryError(
            f'the memories were made by {len(kinds)} bundles, and a picture is embedded by one; '
            'search them one after another'
        )
    return MemoryEncoder(bundle_of(kinds.pop(), bundles)).of_crops([picture])


def _picture(path: Path) -> Image:
    """Read a picture (H, W, 3) BGR, turned as it is meant to be seen."""
    content = read_bounded(path, LARGEST_EXAMPLE, FlightMemoryError, _REMEDY)
    try:
        # Its size is known before anything is decoded.
        quick_format(SimpleNamespace(data=content, format=path.suffix))
        picture: Any = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    except (SensingError, cv2.error) as err:
        raise FlightMemoryError(
            f'{path} is no picture that can be read ({err}); {_REMEDY}'
        ) from err
    if picture is None:
        raise FlightMemoryError(f'{path} is no picture that can be read; {_REMEDY}')
    return np.asarray(picture, np.uint8)
