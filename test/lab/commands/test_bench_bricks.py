"""The bench of bricks, from the command line to its figures."""

from __future__ import annotations

import json
from pathlib import Path

from tiny_bundle import write_tiny_bundle
from typer.testing import CliRunner

from mmedge_lab.commands.bench import bench_app


def test_every_brick_is_measured_and_loading_on_demand_keeps_none(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    given = ['bricks', str(bundle), '--out', str(tmp_path / 'out'), '--events', '2']
    result = CliRunner().invoke(bench_app, given)
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / 'out/bricks.json').read_text())
    bricks = {cost['brick'] for cost in report['bricks']}
    assert bricks == {'camera.small', 'camera.large'}
    ways = {way['way']: way for way in report['ways']}
    # The default level alone takes part in an event.
    states = [span[:2] for span in ways['on demand']['spans']]
    cycle = [['camera.large', s] for s in ('LOADING', 'RUNNING', 'RELEASED')]
    assert states == 2 * cycle
    stays = [span[1] for span in ways['staying loaded']['spans']]
    assert stays == ['LOADING', 'RUNNING', 'RUNNING']
    assert all(way['processor_s'] > 0.0 and way['memory'] for way in ways.values())
    assert (tmp_path / 'out/bricks.png').read_bytes().startswith(b'\x89PNG')
    assert 'on demand' in result.stdout


def test_a_bundle_that_there_is_not_is_said_in_one_line(tmp_path: Path) -> None:
    given = ['bricks', str(tmp_path / 'none'), '--out', str(tmp_path / 'out')]
    result = CliRunner().invoke(bench_app, given)
    assert result.exit_code == 1
    assert 'none' in result.stderr
    assert not list((tmp_path / 'out').glob('*'))
