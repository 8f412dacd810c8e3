"""Tables of parameters and topics in documents, written from the declarations in the code."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mmedge_ros.adaptation.optimizer_setup import ConfigurationOptimizerParameters
from mmedge_ros.core.parameter import Parameter, ParameterError, declared
from mmedge_ros.ros.messages.interfaces import INTERFACES, PROFILES, SERVICES
from mmedge_ros.ros.nodes.bag_player import BagPlayerParameters
from mmedge_ros.ros.nodes.bag_recorder import BagRecorderParameters
from mmedge_ros.ros.nodes.fusion import FusionParameters
from mmedge_ros.ros.nodes.memory import MemoryParameters
from mmedge_ros.ros.nodes.monitor import MonitorParameters
from mmedge_ros.ros.nodes.questions import QuestionParameters
from mmedge_ros.ros.nodes.radar import RadarNodeParameters
from mmedge_ros.ros.nodes.unit_encoder import UnitEncoderParameters
from mmedge_ros.ros.nodes.viewer import ViewerParameters
from mmedge_ros.ros.nodes.visualizer import VisualizerParameters
from mmedge_ros.sensing.camera.device import CameraParameters

# Each generated part of a document stands between two marks; the first says how it is written.
_PART = r'(<!-- {name}: written by [^\n]+ -->\n).*?(<!-- end of {name} -->)'

NODES = {
    'camera': CameraParameters,
    'radar': RadarNodeParameters,
    'unit_encoder': UnitEncoderParameters,
    'fusion': FusionParameters,
    'bag_player': BagPlayerParameters,
    'bag_recorder': BagRecorderParameters,
    'visualizer': VisualizerParameters,
    'memory': MemoryParameters,
    'questions': QuestionParameters,
    'viewer': ViewerParameters,
    'monitor': MonitorParameters,
    'configuration_optimizer': ConfigurationOptimizerParameters,
}


def parameter_tables() -> str:
    """Return one section with a Markdown table per node."""
    head = '| parameter | default | limits | what it does |\n|---|---|---|---|'
    sections = []
    for name, kind in NODES.items():
        rows = '\n'.join(_row(item) for item in declared(kind))
        sections.append(f'## {name}\n\n{head}\n{rows}\n')
    return '\n' + '\n'.join(sections)


def topic_table() -> str:
    """Return the topics of the graph as a Markdown table."""
    head = (
        '| topic | type | from | to | quality of service | what it carries |\n'
        '|---|---|---|---|---|---|'
    )
    rows = [
        f'| `{i.topic}` | {i.msgtype.replace("/msg/", "/")} | {_nodes(i.publishers)} | '
        f'{_nodes(i.subscribers)} | {PROFILES[i.profile]} | {i.meaning} |'
        for i in INTERFACES
    ]
    return '\n'.join([head, *rows]) + '\n'


def service_table() -> str:
    """Return the services and actions of the graph as a Markdown table."""
    head = '| service | type | answered by | what it answers |\n|---|---|---|---|'
    rows = [f'| `{s.name}` | {_short(s.kind)} | {s.server} | {s.meaning} |' for s in SERVICES]
    return '\n'.join([head, *rows]) + '\n'


def with_tables(text: str) -> str:
    """Return a document with the parts between its marks replaced.

    :raises ParameterError: when it has no marks
    """
    replaced = 0
    tables = {
        'parameters': parameter_tables,
        'topics': topic_table,
        'services': service_table,
    }
    for name, table in tables.items():
        content = table()
        content = content.replace('\\', r'\\')
        part = re.compile(_PART.format(name=name), re.DOTALL)
        text, count = part.subn(rf'\1{content}\2', text)
        replaced += count
    if not replaced:
        raise ParameterError(
            'the markers are missing: <!-- parameters: written by `...` --> and '
            '<!-- end of parameters -->, or the same with topics'
        )
    return text


def write_tables(path: Path) -> None:
    """Bring the tables of a document up to date.

    :raises ParameterError: when it has no marks
    """
    path.write_text(with_tables(path.read_text()))


def _short(kind: str) -> str:
    """Return a type as ROS's tools name it in short; that of an action says that it is one."""
    return kind.replace('/srv/', '/').replace('/action/', '/') + (
        ' (action)' if '/action/' in kind else ''
    )


def _nodes(names: tuple[str, ...]) -> str:
    return ', '.join(names) or '*'


def _row(item: Parameter) -> str:
    bounds = item.bounds
    unit = f' {bounds.unit}' if bounds.unit else ''
    if isinstance(item.default, tuple):
        default = ', '.join(f'`{v}`' for v in item.default) or 'none'
    elif isinstance(item.default, bool):
        default = f'`{str(item.default).lower()}`'
    elif isinstance(item.default, float):
        default = f'`{item.default:g}`{unit}'
    else:
        default = f'`{item.default}`{unit}' if item.default != '' else 'empty'
    limits = ', '.join(choice or 'empty' for choice in bounds.choices)
    if not limits and (bounds.minimum is not None or bounds.maximum is not None):
        low = '' if bounds.minimum is None else f'{bounds.minimum:g}'
        high = '' if bounds.maximum is None else f'{bounds.maximum:g}'
        limits = f'{low} .. {high}'.strip()
    return f'| `{item.name}` | {default} | {limits} | {bounds.description} |'


def main() -> None:
    """Bring the documents that are named up to date."""
    for name in sys.argv[1:]:
        write_tables(Path(name))


if __name__ == '__main__':
    main()
