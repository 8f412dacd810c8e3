"""A small simulated set keeps its figures: the whole way from pixels to verdicts.

Where a change moves them on purpose, `STORE` writes them anew; say in the commit why.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mmedge_lab.rivals.comparison import figures
from mmedge_ros.commands.main import app

KEPT = Path(__file__).parent / 'policies.json'
RECIPE = (
    *('--flights', '1', '--seconds', '3', '--jobs', '1', '--no-timing'),
    *('--policies', 'blocking_cached,non_blocking,pipelined_min,ours'),
    *('--protocols', 'stream', '--limits', '50ms', '--shares', '100,50'),
)
STORE = f'mmedge lab evaluate {" ".join(RECIPE)} --store test/regression/policies.json'


@pytest.mark.timeout(600)
def test_a_small_set_keeps_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Figures take seconds; they have tests of their own.
    monkeypatch.setattr(figures, 'draw_comparison', lambda report: [])
    arguments = ['lab', 'evaluate', *RECIPE, '--against', str(KEPT), '--out', str(tmp_path)]
    result = CliRunner().invoke(app, arguments, env={'NO_COLOR': '1'})
    assert result.exit_code == 0, f'{result.output}\nwhere that is meant: {STORE}'
    assert '0 of ' in result.stderr.splitlines()[-1]
