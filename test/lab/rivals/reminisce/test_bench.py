"""`mmedge lab bench memory`: every part has rows and controls, and what is wrong is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hand_made_crops import write_crops
from typer.testing import CliRunner, Result

from mmedge_lab.commands.main import lab_app

# Of the first sixty scenes, twelve fit margins and six judge.
SCENES, OBJECTS = 60, 6


def run(crops: Path, out: Path, *more: str) -> Result:
    options = [crops, '--out', out, '--set', 'large=', '--quick', *more]
    return CliRunner().invoke(lab_app, ['bench', 'memory', *map(str, options)])


def test_every_part_is_judged_beside_its_control(tmp_path: Path) -> None:
    done = run(write_crops(tmp_path / 'crops', SCENES, OBJECTS), tmp_path / 'out')
    assert done.exit_code == 0, done.output
    content = json.loads((tmp_path / 'out/memory.json').read_text())
    tables = {of['title']: {row['name']: row for row in of['rows']} for of in content['tables']}
    values = {title: {n: row['values'] for n, row in of.items()} for title, of in tables.items()}
    exits = values['exits']
    assert exits['exit 3']['words']['value'] > exits['exit 1']['words']['low']
    assert 'words' not in exits['exit 3, tap in int4']
    controls = {
        'predicted exits': {'dealt to others', 'one exit'},
        'sure heads': {'dealt to others', 'one exit'},
        'healing of exit 2': {'as it is'},
        'questions at every depth': {'asked at the end', 'one exit'},
        'questions at every depth, refined': {'asked at the end', 'one exit'},
        'refining of exit 1': {'coarse', 'one exit'},
        'store of exit 3': {'as it is'},
        'time of predicted exits': {'as they come'},
    }
    for title, names in controls.items():
        compared = {name for row in tables[title].values() for name in row['against']}
        assert compared == names, title
    fast = values['time in batches of 1']['exit 1']['per_s']['value']
    assert fast > values['time in batches of 1']['the end']['per_s']['value']
    # Rounds of timing are no scenes, by which intervals are drawn.
    for timed in (values['time in batches of 1']['the end']['per_s'], exits['exit 1']['ms']):
        assert timed['low'] is timed['high'] is None
    assert 0.0 < values['exit that suffices']['predicted']['right']['value'] <= 1.0


@pytest.mark.parametrize(
    ('scenes', 'more', 'words'),
    [
        (0, (), 'holds no crops; name the folder'),
        (8, (), 'take crops of more scenes'),
        (8, ('--set', 'large=flight_people'), 'name a bundle whose camera is in stages'),
    ],
)
def test_what_cannot_be_judged_ends_with_a_sentence(
    tmp_path: Path, scenes: int, more: tuple[str, ...], words: str
) -> None:
    folder = tmp_path / 'crops'
    folder.mkdir()
    if scenes:
        write_crops(folder, scenes)
    done = run(folder, tmp_path / 'out', *more)
    assert done.exit_code == 1
    assert words in ' '.join(done.stderr.split())
