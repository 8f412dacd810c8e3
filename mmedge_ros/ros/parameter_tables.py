"""The README's parameter tables, written from the declarations of the nodes."""

from __future__ import annotations

from pathlib import Path

from mmedge_ros.parameter import Parameter, ParameterError, declared
from mmedge_ros.ros.encoder_setup import UnitEncoderParameters
from mmedge_ros.ros.nodes.fusion import FusionParameters
from mmedge_ros.ros.nodes.visualizer import VisualizerParameters
from mmedge_ros.ros.player_setup import BagPlayerParameters

_BEGIN = '<!-- parameters: written by `mmedge parameters --write README.md` -->'
_END = '<!-- end of parameters -->'

NODES = {
    'unit_encoder': UnitEncoderParameters,
    'fusion': FusionParameters,
    'bag_player': BagPlayerParameters,
    'visualizer': VisualizerParameters,
}


def parameter_tables() -> str:
    """Return one Markdown table per node."""
    parts = []
    for name, kind in NODES.items():
        rows = [_row(item) for item in declared(kind)]
        head = '| parameter | default | limits | what it does |\n|---|---|---|---|'
        table = f'{head}\n' + '\n'.join(rows)
        parts.append(f'<details><summary>{name}</summary>\n\n{table}\n\n</details>')
    return '\n'.join(parts) + '\n'


def with_tables(text: str) -> str:
    """Return a document with the part between its markers replaced.

    :raises ParameterError: when the markers are missing
    """
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ParameterError(f'the markers {_BEGIN!r} and {_END!r} are missing')
    return f'{before}{_BEGIN}\n{parameter_tables()}{_END}{after}'


def write_tables(path: Path) -> None:
    """Bring the tables of a document up to date.

    :raises ParameterError: when the markers are missing
    """
    path.write_text(with_tables(path.read_text()))


def _row(item: Parameter) -> str:
    bounds = item.bounds
    unit = f' {bounds.unit}' if bounds.unit else ''
    if isinstance(item.default, tuple):
        shown = ', '.join(f'`{v}`' for v in item.default) or 'none'
    elif isinstance(item.default, float):
        shown = f'`{item.default:g}`{unit}'
    else:
        shown = f'`{item.default}`{unit}' if item.default != '' else 'empty'
    limits = ', '.join(bounds.choices)
    if not limits and (bounds.minimum is not None or bounds.maximum is not None):
        low = '' if bounds.minimum is None else f'{bounds.minimum:g}'
        high = '' if bounds.maximum is None else f'{bounds.maximum:g}'
        limits = f'{low} .. {high}'.strip()
    return f'| `{item.name}` | {shown} | {limits} | {bounds.description} |'
