"""What a gate saves and loses beside other ways to save."""

from __future__ import annotations

from pathlib import Path

import pytest
from bag_fixtures import write_bag
from gated_bundle import write_gated_bundle
from tiny_bundle import write_tiny_bundle
from truth_fixtures import recording_with_truth

from mmedge_lab.judging.bench import BenchRequest, UnmeasuredError
from mmedge_lab.judging.bench_table import bench_table
from mmedge_lab.judging.run_bench import judge
from mmedge_lab.rivals.mmedge.gate_bench import (
    BOTH,
    GATE,
    LOWER,
    LOWER_ALIKE,
    REUSE,
    as_many_encodes,
    bench,
)


def test_a_gate_and_other_ways_save_encodes_of_the_same_flight(tmp_path: Path) -> None:
    flight = write_bag(tmp_path / 'flight', messages=recording_with_truth(2.0))
    bundle = write_gated_bundle(tmp_path / 'gated')
    made = bench(BenchRequest((flight,), str(bundle), tmp_path / 'out'), level='small')
    opened = made.open(made.subjects[0], made.rows, lambda _: None)
    sums = {row.name: row.judge(opened) for row in made.rows}
    assert set(sums) == {GATE, BOTH, *LOWER, *REUSE}
    encodes = {name: of['encodes'] for name, of in sums.items()}
    assert len(set(encodes.values())) == 1
    assert 0 < sums[GATE]['saved'] < sums[BOTH]['saved']
    assert sums[GATE]['early'] > 0 == sums['reuse 2']['early']
    assert sums['reuse 3']['saved'] > sums['reuse 2']['saved'] > 0


def test_a_bundle_without_a_gate_leaves_its_rows_empty(tmp_path: Path) -> None:
    flight = write_bag(tmp_path / 'flight', messages=recording_with_truth(1.0))
    bundle = write_tiny_bundle(tmp_path / 'tiny')
    made = bench(BenchRequest((flight,), str(bundle), tmp_path / 'out'), level='small')
    opened = made.open(made.subjects[0], made.rows, lambda _: None)
    with pytest.raises(UnmeasuredError, match='mmedge lab train gate'):
        made.rows[0].judge(opened)
    table = bench_table('gate', made, judge(made, tmp_path))['tables'][0]
    assert {row['name'] for row in table['rows'] if row['values']} == {*LOWER, *REUSE}


def test_other_ways_are_mixed_to_as_many_encodes() -> None:
    def sums(saved: float, iou: float) -> dict[str, float]:
        same = {'people': 1000.0, 'held': 500.0, 'encodes': 100.0, 'missed': 0.0}
        return {**same, 'saved': saved, 'iou': iou}

    little, much = (name for name, _ in zip(LOWER, range(2), strict=False))
    results = {
        GATE: [sums(30.0, 4.0)] * 3,
        little: [sums(20.0, 10.0)] * 3,
        much: [sums(40.0, 40.0)] * 3,
    }
    ((row, mixed),) = as_many_encodes(results).items()
    assert row.name == LOWER_ALIKE
    assert [of['iou'] for of in mixed] == [25.0] * 3
    assert mixed[0]['saved'] == 30.0
    # Saving nothing loses nothing.
    results[GATE] = [sums(10.0, 4.0)] * 3
    ((_, less),) = as_many_encodes(results).items()
    assert less[0]['iou'] == 5.0
