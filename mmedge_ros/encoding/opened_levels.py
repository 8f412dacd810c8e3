"""The networks of the levels of one modality, each opened when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from mmedge_ros.encoding import EncodingError

Network = TypeVar('Network')


class OpenedLevels(Generic[Network]):
    """Opens each level once per device, and remembers those that cannot be opened.

    :param open_level: opens the network of a level on a device
    :param levels: what ``open_level`` knows; () where one network serves all names
    :param default: the level that stands for ''
    """

    def __init__(
        self,
        open_level: Callable[[str, str], Network],
        levels: tuple[str, ...],
        default: str,
    ) -> None:
        self._open = open_level
        self._levels = levels
        self._default = default
        self._opened: dict[tuple[str, str], Network | EncodingError] = {}

    def name(self, level: str) -> str:
        """Return the level a configuration means."""
        return level or self._default

    def get(self, level: str, device: str) -> Network:
        """Return the network of a level.

        :raises EncodingError: if it cannot be opened, or could not before
        """
        key = (level if self._levels else '', device)
        if key not in self._opened:
            try:
                self._opened[key] = self._open(*key)
            except EncodingError as err:
                # Kept: hashing and parsing a broken file again would slow down every unit.
                self._opened[key] = err
        network = self._opened[key]
        if isinstance(network, EncodingError):
            raise EncodingError(str(network))
        return network

    def all_on(self, device: str) -> Iterator[Network]:
        """Yield the network of every level; errors as for ``get``."""
        for level in self._levels or (self._default,):
            yield self.get(level, device)
