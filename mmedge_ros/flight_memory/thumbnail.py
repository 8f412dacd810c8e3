"""Small pictures of moments: JPEG, small enough for hours of flight."""

from __future__ import annotations

import io
from typing import Any

import cv2
import numpy as np

from mmedge_ros.data_types import Box
from mmedge_ros.encoding.crops import cut, resized
from mmedge_ros.encoding.detector import Image

# The longer side (px) and the JPEG quality of objects and of key frames. Over 1500 crops of
# simulated scenes, 64 px high, an object takes 0.76 kB, at most 1.35 (quality 90: 0.87 and 1.56,
# 75: 0.63 and 1.12); over 34 test flights a key frame takes 1.0 to 2.7 kB, at most 2.9 (quality
# 85: 4.2).
OBJECT_SIDE, _OBJECT_QUALITY = 64, 85
KEY_FRAME_SIDE, _KEY_FRAME_QUALITY = 128, 70
MARGIN = 0.1


def object_thumbnail(picture: Image, box: Box) -> bytes:
    """Return an object of a picture (H, W, 3) BGR, with some of what is around it.

    :raises EncodingError: if nothing of the box lies in the picture
    """
    return _jpeg(cut(picture, box, MARGIN), OBJECT_SIDE, _OBJECT_QUALITY)


def key_frame_thumbnail(picture: Image) -> bytes:
    """Return a whole picture (H, W, 3) BGR."""
    return _jpeg(picture, KEY_FRAME_SIDE, _KEY_FRAME_QUALITY)


def picture_of(thumbnail: bytes) -> Image | None:
    """Return a thumbnail as a picture (H, W, 3) BGR; None if it is none of ours."""
    from PIL import Image as Pillow

    try:
        # The size is known before anything is decoded.
        with Pillow.open(io.BytesIO(thumbnail), formats=['JPEG']) as opened:
            is_ours = max(opened.size) <= KEY_FRAME_SIDE
    except (OSError, ValueError, SyntaxError):
        return None
    if not is_ours:
        return None
    decoded: Any = cv2.imdecode(np.frombuffer(thumbnail, np.uint8), cv2.IMREAD_COLOR)
    return None if decoded is None else np.asarray(decoded, np.uint8)


def _jpeg(picture: Image, side: int, quality: int) -> bytes:
    height, width = picture.shape[:2]
    scale = side / max(height, width)
    if scale < 1.0:
        picture = resized(picture, (max(round(width * scale), 1), max(round(height * scale), 1)))
    # Tables made for the picture take a third off.
    flags = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_OPTIMIZE, 1]
    _, content = cv2.imencode('.jpg', np.ascontiguousarray(picture), flags)
    return content.tobytes()
