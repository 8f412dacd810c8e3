"""A large encoder stage by stage, and whole: the same figures of the same work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tiny_stages import write_camera_stages

from mmedge_lab.rivals.reminisce.layered_loading import (
    LAYERED,
    WAYS,
    WHOLE,
    LoadingTask,
    loading_figures,
    run_pictures,
)
from mmedge_ros.encoding import EncodingError


def task(folder: Path) -> LoadingTask:
    stages = write_camera_stages(folder)
    reads = [['images'], ['p1'], ['p1', 'p2']]
    return LoadingTask(LAYERED, 3, (1, 3, 480, 640), [str(stage) for stage in stages], reads)


def test_both_ways_put_out_the_same(tmp_path: Path) -> None:
    layered = task(tmp_path)
    found = [run_pictures(replace(layered, way=way))['sum'] for way in WAYS]
    assert found[0] == pytest.approx(found[1])
    assert found[0] > 0.0
    # A stage less is another work.
    shorter = replace(layered, stages=layered.stages[:2], reads=layered.reads[:2])
    assert run_pictures(shorter)['sum'] != pytest.approx(found[0])


def test_figures_come_from_processes_of_their_own(tmp_path: Path) -> None:
    shares: list[float] = []
    stages = [Path(stage) for stage in task(tmp_path).stages]
    rows = loading_figures(stages, (1,), 1, shares.append)
    assert [(row['pictures'], row['way']) for row in rows] == [(1, LAYERED), (1, WHOLE)]
    assert all(row['per_s'] > 0.0 and row['peak_mb'] >= 0.0 for row in rows)
    assert shares == [0.5, 1.0]


def test_a_broken_stage_is_named(tmp_path: Path) -> None:
    broken = task(tmp_path)
    Path(broken.stages[1]).write_bytes(b'no network')
    with pytest.raises(EncodingError, match=r'small_2\.onnx'):
        run_pictures(broken)
