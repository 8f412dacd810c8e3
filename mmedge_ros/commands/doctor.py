"""What `mmedge doctor` does: one page of what is wrong, and the remedy."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmedge_ros.commands.display import one_line
from mmedge_ros.commands.errors import plain_errors
from mmedge_ros.commands.graph_options import takes
from mmedge_ros.commands.options import (
    NetworkOption,
    flag,
    option,
)
from mmedge_ros.commands.tables import print_parts
from mmedge_ros.ros.graph.options import UP

if TYPE_CHECKING:
    from rich.table import Table

    from mmedge_ros.preflight.finding import Check, Finding
    from mmedge_ros.preflight.graph_view import GraphView

# s, after which something hangs. A graph is looked at for three seconds, once Python has started,
# which on a busy machine takes several more; less would find fewer ends of a topic than there are.
_PATIENCE = 15.0
_STATE_WIDTH, _SUBJECT_WIDTH = 7, 16
_COLOURS = {'ok': 'green', 'note': 'yellow', 'wrong': 'bold red'}


@takes(UP, only=('camera', 'radar', 'odometry', 'detector', 'extrinsics'))
def doctor(
    profile: Annotated[Path, option('--profile', 'FILE', 'device profile of this machine')] = Path(
        'out/profile.yaml'
    ),
    network: NetworkOption = False,
    as_json: Annotated[bool, flag('--json', 'print JSON, for programs')] = False,
    **shared: Any,
) -> None:
    """Say what is wrong with machine, ROS, sensors, topics and models, and what to do about it.

    It listens to the graph for two seconds and changes nothing.

    Exit status 1 if something has to be put right before a flight.
    """
    with plain_errors():
        from mmedge_ros.geometry.calibration import Calibration, read_calibration
        from mmedge_ros.geometry.transforms import format_static_transform
        from mmedge_ros.preflight.input_checks import check_age
        from mmedge_ros.ros.graph.middleware_profile import set_profile

        extrinsics = shared['extrinsics']
        given = read_calibration(Path(extrinsics)) if extrinsics else Calibration(None, [])
        set_profile(network)
        sections = examined(
            [shared['camera'], shared['radar'], shared['odometry']],
            [format_static_transform(transform) for transform in given.transforms],
            shared['detector'],
            profile,
        )
        if aged := check_age(given.calibrated, datetime.now(timezone.utc).date()):
            sections['frames'] = [*sections.get('frames', ()), *aged]
    count = [f.state.value for findings in sections.values() for f in findings].count
    if as_json:
        plain = {
            section: [{**finding._asdict(), 'state': finding.state.value} for finding in findings]
            for section, findings in sections.items()
        }
        content = {'wrong': count('wrong'), 'notes': count('note'), 'sections': plain}
        typer.echo(json.dumps(content, indent=2))
    else:
        print_parts(*page(sections), f'\n{count("wrong")} wrong, {count("note")} to note')
    if count('wrong'):
        raise typer.Exit(1)


def examined(
    topics: Sequence[str], transforms: Sequence[str], detector: str, profile: Path
) -> dict[str, list[Finding]]:
    """Return all findings by section; the graph is looked at while the rest is examined.

    :param topics: of camera, radar and odometry
    :param transforms: of the user's file, "parent child x y z qx qy qz qw"
    """
    from mmedge_ros.preflight.finding import examine, note, wrong
    from mmedge_ros.preflight.input_checks import (
        check_clocks,
        check_frames,
        check_inputs,
        check_nodes,
    )

    snapshot: list[GraphView] = []

    def look() -> list[Finding]:
        if importlib.util.find_spec('rclpy') is None:
            return [note('graph', 'not looked at: there is no ROS 2')]
        view = look_at_graph(topics, _PATIENCE - 0.5)
        if isinstance(view, str):
            remedy = (
                'source ROS 2 and the workspace with mmedge_ros, or use ./mmedge; see software'
            )
            return [wrong('graph', view, remedy)]
        snapshot.append(view)
        return check_inputs(view)

    sections = examine({**_machine_checks(detector, profile), 'topics': look}, _PATIENCE)
    for view in snapshot:
        judges: dict[str, Check] = {
            'clocks': partial(check_clocks, view),
            'frames': partial(check_frames, view, transforms),
            'nodes': partial(check_nodes, view.statuses),
        }
        sections |= examine(judges, _PATIENCE)
    return {section: findings for section, findings in sections.items() if findings}


def _machine_checks(detector: str, profile: Path) -> dict[str, Check]:
    from mmedge_ros.core.clock import SystemClock
    from mmedge_ros.monitoring.machine import machine_description
    from mmedge_ros.monitoring.system_files import SystemFiles
    from mmedge_ros.preflight.device_checks import check_devices
    from mmedge_ros.preflight.machine_checks import check_machine
    from mmedge_ros.preflight.model_checks import check_model, check_profile
    from mmedge_ros.preflight.software_checks import check_python, check_ros
    from mmedge_ros.ros.graph.middleware_files import left_behind, unused

    files = SystemFiles('/')

    def check_models() -> list[Finding]:
        findings, model = check_model(detector)
        return findings + check_profile(profile, model, machine_description(files), time.time())

    def check_software() -> list[Finding]:
        rclpy = importlib.util.find_spec('rclpy')
        return [
            *check_python(sys.version_info[:2], sys.executable, _version_of),
            *check_ros(os.environ, rclpy.origin if rclpy else None, sorted(unused(left_behind()))),
        ]

    return {
        'machine': lambda: check_machine(files, SystemClock()),
        'software': check_software,
        'USB': lambda: check_devices(files),
        'models': check_models,
    }


def _version_of(name: str, distribution: str) -> str | None:
    if importlib.util.find_spec(name) is None:
        return None
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ''  # from the system's packages


def look_at_graph(topics: Sequence[str], patience: float) -> GraphView | str:
    """Look at the graph in a process of its own; return in words why there is nothing to see."""
    from mmedge_ros.preflight.graph_view import GraphView

    command = [sys.executable, '-m', 'mmedge_ros.ros.sessions.graph_snapshot', *topics]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=patience, check=True, errors='replace'
        )
        return GraphView.from_json(done.stdout)
    except subprocess.TimeoutExpired:
        return f'the middleware gave no answer within {patience:.0f} s'
    except subprocess.CalledProcessError as error:
        lines = [line for line in str(error.stderr).splitlines() if line.strip()]
        return f'cannot be looked at: {lines[-1] if lines else f"exit code {error.returncode}"}'
    except (ValueError, TypeError) as error:
        return f'cannot be looked at: {error}'


def page(sections: Mapping[str, Sequence[Finding]]) -> Iterator[Table | str]:
    """Yield a heading and a table for each section; a remedy stands below what it is for."""
    from rich.table import Table
    from rich.text import Text

    for section, findings in sections.items():
        yield f'\n{section}'
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(justify='right', min_width=_STATE_WIDTH)
        table.add_column(min_width=_SUBJECT_WIDTH)
        for finding in findings:
            state = finding.state.value
            words = Text(one_line(finding.words))
            if finding.remedy and state != 'ok':
                words.append(f'\n\N{RIGHTWARDS ARROW} {one_line(finding.remedy)}', style='cyan')
            table.add_row(Text(state, style=_COLOURS[state]), one_line(finding.subject), words)
        yield table
