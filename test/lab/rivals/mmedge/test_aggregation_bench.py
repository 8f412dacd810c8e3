"""The bench of what aggregation leaves to do after a window's last unit."""

from __future__ import annotations

import numpy as np
import pytest

from mmedge_lab.judging.bench import BenchRequest
from mmedge_lab.rivals.mmedge.aggregation_bench import bench


def test_both_ways_are_timed_for_every_length() -> None:
    judged = bench(BenchRequest(quick=True), rounds=1)
    (subject,) = judged.subjects
    opened = judged.open(subject, judged.rows, None)
    shortest = [row for row in judged.rows if row.name == '0.25 s']
    assert [row.group for row in shortest] == ['after the last unit', 'whole window at its end']
    assert all(min(row.judge(opened)['ms']) > 0.0 for row in shortest)
    assert {row.words for row in shortest} == {'7 camera + 5 radar'}


def test_making_features_is_no_part_of_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = bench(BenchRequest(quick=True), rounds=1)
    opened = judged.open(judged.subjects[0], judged.rows, None)
    monkeypatch.delattr(np.random, 'default_rng')
    assert all(row.judge(opened)['ms'] for row in judged.rows if row.name == '0.25 s')
