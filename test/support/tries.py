"""How many examples random tests draw: few in the suite, many by hand."""

from __future__ import annotations

import os

# MMEDGE_TRIES=100 ./mmedge test FILE: a hundred times as many.
FACTOR = int(os.environ.get('MMEDGE_TRIES', '1'))


def tries(usual: int) -> int:
    """Return how many examples to draw where ``usual`` are enough in the suite."""
    return usual * FACTOR
