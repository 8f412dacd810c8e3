"""Pictures that a searcher brings along: "more like this one"."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np

from mmedge_ros.encoding.detector import Image
from mmedge_ros.flight_memory import FlightMemoryError
from mmedge_ros.flight_memory.moment import Vectors
from mmedge_ros.flight_memory.pair_encoder import open_encoder
from mmedge_ros.flight_memory.scorers import bundle_of
from mmedge_ros.flight_memory.store_file import StoreHeader
from mmedge_ros.sensing import SensingError
from mmedge_ros.sensing.camera.image import quick_format
from mmedge_ros.untrusted_files import read_bounded

LARGEST_EXAMPLE = 20 << 20  # bytes
_REMEDY = 'name a jpg or png that shows the object and little else'
# Embeds a picture of one object: its tap (1, T).
Embed = Callable[[Image], Vectors]


def read_example(path: Path) -> bytes:
    """Return the bytes of a picture.

    :raises FlightMemoryError: if the file cannot be read, is empty, or is too large
    """
    content = read_bounded(path, LARGEST_EXAMPLE, FlightMemoryError, _REMEDY)
    if not content:
        raise FlightMemoryError(f'{path} holds no data; {_REMEDY}')
    return content


def example_picture(content: bytes) -> Image:
    """Return a JPEG or PNG as a picture (H, W, 3) BGR, turned as it is meant to be seen.

    :raises FlightMemoryError: if it is none, or too large
    """
    if len(content) > LARGEST_EXAMPLE:
        raise FlightMemoryError(
            f'the example has {len(content)} bytes, at most {LARGEST_EXAMPLE} are read; {_REMEDY}'
        )
    try:
        # Its size is known before anything is decoded.
        quick_format(SimpleNamespace(data=content, format=''))
        picture: Any = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    except (SensingError, cv2.error) as err:
        raise FlightMemoryError(
            f'the example is no picture that can be read ({err}); {_REMEDY}'
        ) from err
    if picture is None:
        raise FlightMemoryError(f'the example is no picture that can be read; {_REMEDY}')
    return np.asarray(picture, np.uint8)


def embedding_by(header: StoreHeader, bundles: Iterable[Path]) -> Embed:
    """Return what embeds a picture as a memory with this header was.

    It raises FlightMemoryError if the bundle is not among these, and EncodingError if that cannot
    be used.
    """
    return lambda picture: open_encoder(bundle_of(header, bundles)).taps_of([picture])
