"""Upper bounds on rates, levels and latency that the state of the system imposes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Caps:
    """Nothing above these may be chosen; what is not listed is free.

    ``rates`` in Hz and ``levels`` by modality; ``latency_limit`` in seconds replaces a longer
    one. ``reasons`` say in words where the caps come from.
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    levels: Mapping[str, str] = field(default_factory=dict)
    latency_limit: float = math.inf
    reasons: tuple[str, ...] = ()

    def limited(self, latency_limit: float) -> float:
        """Return the shorter of two limits; one that is not a number does not count."""
        limits = [v for v in (latency_limit, self.latency_limit) if not math.isnan(v)]
        return min(limits, default=math.inf)


NO_CAPS = Caps()
