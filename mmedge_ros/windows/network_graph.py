"""ONNX graphs with many named tensors in and out, all of fixed shape and float32."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmedge_ros.encoding.onnx_session import open_session, runtime_errors
from mmedge_ros.windows import AggregationError

Array = NDArray[np.float32]
Tensors = Mapping[str, Array]
Shapes = dict[str, tuple[int, ...]]

_MOST_PORTS = 64
# Of one tensor: 64 MiB, fifty times what the largest of ours has.
_MOST_VALUES = 1 << 24


class NetworkGraph:
    """A network opened from a file; ``inputs`` and ``outputs`` are shapes by name.

    ``notes`` are the texts that its export left in it, by name.

    :raises EncodingError: if the file cannot be opened, or has ports of another kind
    """

    def __init__(self, path: Path, threads: int = 1) -> None:
        self.path = path
        self._session: Any = open_session(path, threads)
        self.inputs = self._shapes(self._session.get_inputs())
        self.outputs = self._shapes(self._session.get_outputs())
        self.notes = self._read_notes()

    def require(self, port: str, shape: tuple[int, ...], what: str) -> None:
        """Check an input or output.

        :param what: says in the message what the graph should be
        :raises AggregationError: if there is none of that name, or it has another shape
        """
        actual = self.inputs.get(port, self.outputs.get(port))
        if actual != shape:
            has = 'is not there' if actual is None else f'has the shape {list(actual)}'
            raise AggregationError(
                f'{self.path} is no {what}: {port!r} {has}, it must have {list(shape)}; '
                'use the files of one bundle, made for this version'
            )

    def require_ports(self, inputs: Iterable[str], what: str) -> None:
        """Check that a graph takes these inputs, and no others.

        :raises AggregationError: if it takes others
        """
        for name in sorted(self.inputs.keys() - set(inputs)):
            raise AggregationError(
                f'{self.path} is no {what}: it takes {name[:80]!r}, of which nothing is known; '
                'use the files of one bundle, made for this version'
            )

    def run(self, feeds: Tensors, outputs: Iterable[str]) -> list[Array]:
        """Compute some of the outputs.

        :raises EncodingError: if the network fails
        """
        with runtime_errors(f'{self.path} failed'):
            tensors: list[Array] = self._session.run(list(outputs), dict(feeds))
        return tensors

    def _read_notes(self) -> dict[str, str]:
        with runtime_errors(f'{self.path} has notes that cannot be read; export it again'):
            return dict(self._session.get_modelmeta().custom_metadata_map)

    def _shapes(self, ports: Iterable[Any]) -> Shapes:
        ports = list(ports)
        if len(ports) > _MOST_PORTS:
            raise AggregationError(
                f'{self.path} has {len(ports)} tensors on one side, at most {_MOST_PORTS} are '
                'read; it is no network of a fusion'
            )
        try:
            return {port.name: self._shape(port) for port in ports}
        except UnicodeDecodeError as err:
            raise AggregationError(
                f'{self.path} names its tensors in bytes that are no text; export it again'
            ) from err

    def _shape(self, port: Any) -> tuple[int, ...]:
        shape = tuple(port.shape or ())
        fixed = all(isinstance(n, int) and n > 0 for n in shape)
        if port.type != 'tensor(float)' or not fixed or math.prod(shape) > _MOST_VALUES:
            raise AggregationError(
                f'{self.path} has {port.name[:80]!r} of type {port.type} and shape '
                f'{str(list(shape))[:200]}; all tensors of a fusion are float32, of fixed shape '
                f'and at most {_MOST_VALUES} values. Export it again'
            )
        return shape
