"""The bench of the picture ring, from the command line to its figures."""

from __future__ import annotations

import json
from pathlib import Path

from ros_installed import needs_ros
from typer.testing import CliRunner

from mmedge_lab.commands.bench import bench_app


@needs_ros
def test_both_ways_are_measured_at_both_sizes(tmp_path: Path) -> None:
    given = ['ring', '--out', str(tmp_path), '--rounds', '1', '--seconds', '1']
    result = CliRunner().invoke(bench_app, given)
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / 'ring.json').read_text())
    rows = {(row['size'], row['way']): row for row in report['rows']}
    assert set(rows) == {(s, w) for s in ('VGA', '1080p') for w in ('ring', 'image')}
    assert all(row['both_ms'] > 0.0 and row['latency_p50_ms'] > 0.0 for row in rows.values())
    assert '1080p' in result.stdout
