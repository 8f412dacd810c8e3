"""What can be asked of the live bench, before anything flies."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mmedge_lab.commands.bench import bench_app


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (('--limits', 'soon'), 'soon'),
        (('--limits', '1ms'), 'between 5 and 5000 ms'),
        (('--limits', 'nan'), 'between 5 and 5000 ms'),
        (('--shares', '100,x'), 'PERCENT'),
        (('--shares', '100,0.5'), '100,0.5'),
        (('--phase-seconds', '1'), '--phase-seconds'),
        (('--bag', 'nowhere'), 'nowhere'),
    ],
)
def test_what_cannot_be_flown_is_refused_before_anything_is_done(
    arguments: tuple[str, str], words: str, tmp_path: Path
) -> None:
    out = tmp_path / 'out'
    result = CliRunner().invoke(bench_app, ['adaptation', '--out', str(out), *arguments])
    assert result.exit_code == 2
    assert words in ' '.join(result.stderr.split())
    assert not out.exists()
