"""Values as JSON knows them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain_values(value: Any, digits: int) -> Any:
    """Return values that JSON can hold: rounded numbers, None for NaN and infinity."""
    if isinstance(value, Mapping):
        return {str(key): plain_values(item, digits) for key, item in value.items()}
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain_values(item, digits) for item in value]
    if isinstance(value, float):
        return round(value, digits) + 0.0 if math.isfinite(value) else None
    return value
