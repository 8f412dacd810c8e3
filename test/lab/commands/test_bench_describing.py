"""What can be asked of the live bench beside a language model, before anything flies."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from mmedge_lab.commands.bench import bench_app


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (('--limits', 'soon'), 'soon'),
        (('--kinds', 'count,riddle'), "'riddle'"),
        (('--total-limit', '100'), '--total-limit'),
        (('--seconds', '1'), '--seconds'),
        (('--profile', 'nowhere.yaml'), 'nowhere'),
    ],
)
def test_what_cannot_be_flown_is_refused_before_anything_is_done(
    arguments: tuple[str, str], words: str, tmp_path: Path
) -> None:
    model, profile, out = (tmp_path / name for name in ('own.gguf', 'profile.yaml', 'out'))
    model.write_bytes(b'GGUF')
    profile.write_text('')
    given = [str(model), '--profile', str(profile), '--out', str(out), *arguments]
    result = CliRunner().invoke(bench_app, ['describing', *given])
    assert result.exit_code == 2
    assert words in ' '.join(result.stderr.split())
    assert not out.exists()
