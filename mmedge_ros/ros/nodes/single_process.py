"""All nodes of a graph in one process and one executor, to debug them together."""

from __future__ import annotations

import json
import sys
from functools import partial
from importlib import import_module
from itertools import chain, pairwise
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from rclpy.node import Node

from mmedge_ros.core.parameter import ParameterError
from mmedge_ros.ros.node_main import run_nodes

_NODES = 'mmedge_ros.ros.nodes'


def make_node(executable: str, arguments: list[str]) -> Node:
    """Make one of the package's nodes from the arguments its own process would get."""
    there = [module.name for module in iter_modules([str(Path(__file__).parent)])]
    if executable not in there:
        raise ParameterError(f'no node {executable!r}; there are {", ".join(there)}')
    module = import_module(f'{_NODES}.{executable}')
    own = (value for value in vars(module).values() if isinstance(value, type))
    kind: Any = next(k for k in own if issubclass(k, Node) and k.__module__ == module.__name__)
    return kind(cli_args=arguments, use_global_arguments=False)


def _parameters_of_all(arguments: list[str]) -> list[str]:
    """Return what a launch file sets for all nodes; a node's own parameters come after it."""
    given = [pair for pair in pairwise(arguments) if pair[0] in ('-p', '--param')]
    return ['--ros-args', *chain.from_iterable(given), '--']


def main(args: list[str] | None = None) -> None:
    """Run the nodes described on the command line, as [[executable, [argument, ...]], ...]."""
    given = sys.argv[1:] if args is None else args
    try:
        described = json.loads(given[0]) if given else []
        shared = _parameters_of_all(given[1:])
        makers = [partial(make_node, name, [*shared, *rest]) for name, rest in described]
    except (ValueError, TypeError) as err:
        sys.exit(f'single_process: not a description of nodes: {err}')
    # What follows the description is for the whole process, such as a log level.
    run_nodes(makers, given)


if __name__ == '__main__':
    main()
