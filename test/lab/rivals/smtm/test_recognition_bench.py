"""A look takes the time of the stages that ran and of the lookups, and every method has a row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hand_made_crops import coloured_crops, painted_crops
from hand_made_outputs import STAGE_SECONDS
from tiny_recogniser import CLASSES, write_tiny_recogniser

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import BenchRequest
from mmedge_lab.judging.bench_table import bench_table
from mmedge_lab.judging.run_bench import judge
from mmedge_lab.rivals.smtm.methods import LookAnswer
from mmedge_lab.rivals.smtm.recognition_bench import FULL, TAPS, bench, sums_of
from mmedge_lab.rivals.smtm.streams import DRIFT, KINDS, Stream
from mmedge_lab.rivals.smtm.subject import read_bench_crops
from mmedge_lab.training import TrainingError
from mmedge_lab.training.crop_set import CropSet
from mmedge_ros.encoding.crops import CropForm


class Scripted:
    """Answers as it was told."""

    bytes = 2000

    def __init__(self, *answers: LookAnswer) -> None:
        self.answers = list(answers)

    def look(self, row: int, track: int) -> LookAnswer:
        return self.answers.pop(0)


def test_what_is_saved_is_beside_all_stages_without_a_lookup() -> None:
    rows = np.array([0, 1, 2, 0, 1])
    stream = Stream(rows, rows, np.zeros(5, np.int64))
    method = Scripted(
        LookAnswer(0, 1, 0.0001),
        LookAnswer(1, 1, 0.0003),
        LookAnswer(0, 2, 0.0005),
        LookAnswer(0, 0, 0.0),
        LookAnswer(1, 2, 0.0005, reused=0.5),
    )
    sums = sums_of(method, stream, np.array([0, 1, 2]), STAGE_SECONDS)
    assert (sums['right'], sums['looks'], sums['early']) == (4, 5, 2)
    assert (sums['right_at_end'], sums['looks_at_end']) == (1, 1)
    assert sums['half'] == 2
    # Lookups take their median: 0.2 ms after one stage, 0.5 ms after both.
    assert sums['seconds'] == pytest.approx(2 * 0.0012 + 0.0045 + 0.0025)
    assert sums['whole'] == pytest.approx(5 * 0.004)
    assert sums['bytes'] == 2000


def test_every_method_is_judged_on_every_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tiny recogniser has three classes of its own.
    monkeypatch.setattr('mmedge_lab.rivals.smtm.subject.CLASSES', CLASSES)
    bundle = write_tiny_recogniser(tmp_path / 'bundle')
    crops = coloured_crops(tmp_path / 'crops', 60)
    request = BenchRequest((crops,), str(bundle), tmp_path, quick=True)
    of = bench(request, looks=120, seeds=1)
    table = bench_table('recognition', of, judge(of, tmp_path))
    by_title = {
        part['title'].partition(':')[0]: {row['name']: row['values'] for row in part['rows']}
        for part in table['tables']
    }
    assert {title.partition(':')[0] for title in (*KINDS, TAPS)} <= set(by_title)
    four = by_title['four active']
    assert four[FULL]['saved']['value'] == 0.0
    assert four['guarded eps=0.1']['early']['value'] > 0.7
    assert four['heads eps=0.1']['right']['value'] == 1.0
    assert four['track labels']['saved']['value'] > 0.7
    assert four['guarded eps=0.1']['memory']['value'] > four['printed tau=0.1']['memory']['value']
    assert 'DeepCache-like 25 dB' in four
    assert 'guarded eps=0.1, fixed' in by_title[DRIFT]
    assert by_title[TAPS]['tap 1, head']['right']['value'] == 1.0


def scenes(count: int) -> CropSet:
    """Two crops of each scene: one with a bright box, and its number as its object."""
    crops = np.zeros((2 * count, 72, 48, 3), np.uint8)
    crops[:, 14:58, 9:39] = 200
    facts = np.zeros((2 * count, 4), np.int8)
    facts[1::2, 0] = 3
    plain = painted_crops(count, objects=1)
    numbers = np.tile(np.arange(2, dtype=np.int32), count)
    return plain._replace(crops=crops, facts=facts, objects=numbers)


def write(folder: Path, crops: CropSet) -> Path:
    folder.mkdir()
    np.savez(folder / 'crops_00000.npz', **crops._asdict())
    return folder


def test_of_ten_scenes_two_are_fitted_on_and_one_judges(tmp_path: Path) -> None:
    form = CropForm((32, 48), margin=0.0)
    fitting, judging = read_bench_crops(write(tmp_path / 'crops', scenes(10)), form)
    assert judging.labels.tolist() == [0, 3]
    assert len(np.unique(judging.objects)) == 2
    assert len(fitting.labels) == 4
    assert judging.crops.shape == (2, 48, 32, 3)
    assert judging.crops[:, 3:-3, 3:-3].min() == 200, 'without the room around the box'
    fewer, _ = read_bench_crops(tmp_path / 'crops', form, most=1)
    assert fewer.labels.tolist() == [0, 3]


def test_folders_without_enough_crops_are_refused(tmp_path: Path) -> None:
    form = CropForm((32, 48))
    with pytest.raises(EvaluationError, match='take more scenes'):
        read_bench_crops(write(tmp_path / 'few', scenes(5)), form)
    (tmp_path / 'empty').mkdir()
    with pytest.raises(TrainingError, match='holds no crops; name the folder that'):
        read_bench_crops(tmp_path / 'empty', form)
