"""From devices, messages and raw bytes to arrays, and which units are taken."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_ros import MmedgeError


class SensingError(MmedgeError):
    """A sensor message or stream does not hold what it claims to hold."""


def byte_view(data: Any, owner: str) -> NDArray[np.uint8]:
    """View array.array, bytes, memoryview or ndarray as (N,) uint8 without copying.

    The view is read-only where the source is. ``owner`` names the message in the error.

    :raises SensingError: if ``data`` is not a buffer
    """
    try:
        view = memoryview(data)
        if view.nbytes == 0:
            return np.zeros(0, np.uint8)
        return np.frombuffer(view if view.c_contiguous else view.tobytes(), np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise SensingError(
            f'{owner}: data is a {type(data).__name__}, not a buffer of bytes; '
            'pass an array.array, bytes, memoryview or ndarray'
        ) from error
