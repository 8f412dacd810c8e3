"""How a picture looks as a whole: brightness, contrast and sharpness, from a few of its rows."""

from __future__ import annotations

import math

import numpy as np

from mmedge_ros.data_types import Appearance
from mmedge_ros.sensing.camera.image import Picture

# So many rows are looked at, spread over the picture; a row of 640 pixels takes 2 us.
_ROWS = 32
_GREEN = 1
_WHITE = 255.0


def appearance_of(picture: Picture) -> Appearance:
    """Return how a picture (H, W, 3) BGR looks; of an empty one nothing is known.

    Green stands for grey. Sharpness is the mean difference of pixels that are two apart in a row,
    divided by the contrast of the rows: blur takes from the former and leaves the latter.
    """
    height, width = picture.shape[:2]
    if not height or width < 3:
        return Appearance()
    step = max(height // _ROWS, 1)
    rows = picture[step // 2 :: step, :, _GREEN].astype(np.float32) / _WHITE
    contrast = float(rows.std())
    change = float(np.abs(rows[:, 2:] - rows[:, :-2]).mean())
    return Appearance(
        float(rows.mean()), contrast, change / contrast if contrast > 0.0 else math.nan
    )
