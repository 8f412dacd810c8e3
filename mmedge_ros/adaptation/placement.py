"""Where each brick runs: on which of the devices that it was measured on.

Latency, free memory and the state of power decide together; a device that fails or is busy with
something else is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import psutil

from mmedge_ros.encoding.bricks import CPU, BrickCost, BrickState, BrickStatus, brick_name

_Place = tuple[str, str]

# So much memory (bytes) is left free when a brick moves.
_SPARE = 200e6
# A device where runs take so many times as long as measured is busy, and is left for so long (s).
_BUSY, _REST = 2.0, 30.0
# A move must pay: at most this share of what the present device costs.
_GAIN = 0.9


def available_memory() -> float:
    """Return the memory (bytes) that this machine can give without swapping."""
    return float(psutil.virtual_memory().available)


class Placement:
    """Chooses a device for each brick; instants are seconds on the monotonic clock.

    :param costs: of each brick on each device that it may run on
    :param defaults: the level of each modality that '' stands for
    :param free_memory: bytes
    """

    def __init__(
        self,
        costs: Iterable[BrickCost],
        defaults: Mapping[str, str],
        free_memory: Callable[[], float] = available_memory,
    ) -> None:
        self._defaults = {m: brick_name(m, level) for m, level in defaults.items()}
        by_brick: dict[str, dict[str, BrickCost]] = {}
        for cost in costs:
            by_brick.setdefault(cost.name, {})[cost.device] = cost
        # Those with a choice.
        self._costs = {name: of for name, of in by_brick.items() if len(of) > 1}
        self._free_memory = free_memory
        self._chosen: dict[str, str] = {}
        self._left_until: dict[_Place, float] = {}

    def take(self, statuses: Iterable[BrickStatus], now: float) -> None:
        """Note what bricks do: one that failed stays away, a slow one for a while."""
        for status in statuses:
            place = (status.name, status.device)
            cost = self._costs.get(status.name, {}).get(status.device)
            if status.state is BrickState.FAILED:
                self._left_until[place] = math.inf
            elif cost is not None and _is_slow(status, cost):
                self._left_until[place] = max(self._left_until.get(place, 0.0), now + _REST)

    def devices(self, saving: bool, now: float) -> Mapping[str, str]:
        """Return the device of each brick that there is a choice for, by its name.

        That of a modality's default level stands under the modality's name, too.

        :param saving: whether the battery is to be saved: the least energy decides, where it was
            measured on every device
        """
        if not self._costs:
            return {}  # ten times a second nothing is asked of the system
        free = self._free_memory() - _SPARE
        for name, costs in self._costs.items():
            present = self._chosen.get(name, CPU)
            left = [
                cost
                for cost in costs.values()
                if self._left_until.get((name, cost.device), 0.0) <= now
                and (cost.memory <= free or cost.device == present)
            ]
            if left:
                self._chosen[name] = _best(left, present, saving)
        own = {m: self._chosen[n] for m, n in self._defaults.items() if n in self._chosen}
        return {**self._chosen, **own}


def _is_slow(status: BrickStatus, cost: BrickCost) -> bool:
    # What does not run has only old times; NaN where it never has.
    return status.state is BrickState.RUNNING and status.run_time > _BUSY * cost.run_time


def _best(costs: list[BrickCost], present: str, saving: bool) -> str:
    """Return the cheapest device; the present one unless another is clearly cheaper."""
    by_energy = saving and all(math.isfinite(cost.energy) for cost in costs)
    price = {c.device: c.energy if by_energy else c.run_time for c in costs}
    best = min(price, key=price.__getitem__)
    stays = present in price and price[best] > _GAIN * price[present]
    return present if stays else best
