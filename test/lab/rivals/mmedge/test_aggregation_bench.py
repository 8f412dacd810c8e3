"""The bench of what aggregation leaves to do after a window's last unit."""

from __future__ import annotations

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
