"""Fixed configurations beside the optimiser and the clairvoyant choice: sums that are made up."""

from __future__ import annotations

from pathlib import Path

from tiny_bundle import write_tiny_bundle
from truth_fixtures import write_short_flights

from mmedge_lab.judging.bench import BenchRequest
from mmedge_lab.judging.bench_table import bench_table
from mmedge_lab.judging.run_bench import judge
from mmedge_lab.rivals.mmedge.held_bench import (
    CLAIRVOYANT,
    OPTIMISER,
    Condition,
    _derived,
    bench,
    in_phases,
)

HALF, STEPS = Condition((50.0,)), Condition((100.0, 50.0))


def phase(overlap: float, late: float = 0.0) -> dict[str, float]:
    return {'stream_overlap': overlap, 'streamed': 100.0, 'windows': 100.0, 'late': late}


# By configuration, its phases with all of the processor and with half of it.
PHASES = {'fast': (phase(40.0), phase(38.0)), 'slow': (phase(60.0), phase(50.0, late=4.0))}
RESULTS = {
    f'{STEPS.name}: {name}': [in_phases(phases), in_phases(phases)]
    for name, phases in PHASES.items()
} | {f'{HALF.name}: {name}': [in_phases(phases[1:])] for name, phases in PHASES.items()}


def test_the_clairvoyant_takes_the_best_in_each_phase() -> None:
    rows = {
        row.key: (row, sums)
        for row, sums in _derived([STEPS], {STEPS.name: 'fast'}, 'set', RESULTS).items()
    }
    row, sums = rows[f'{STEPS.name}: {CLAIRVOYANT}']
    assert row.words == 'slow; fast'
    assert [of['stream_overlap'] for of in sums] == [98.0, 98.0]
    row, sums = rows[f'{STEPS.name}: best on set']
    assert (row.words, sums[0]['stream_overlap']) == ('fast', 78.0)


def test_every_configuration_is_flown_beside_the_optimiser(tmp_path: Path) -> None:
    bundle = write_tiny_bundle(tmp_path / 'tiny', {'small': 0.5})
    write_short_flights(tmp_path / 'set', 1, 1.2)
    request = BenchRequest((tmp_path / 'set',), str(bundle), tmp_path)
    made = bench(request, shares='50', steps='100,50')
    content = bench_table('fixed', made, judge(made, tmp_path))
    for table in content['tables']:
        names = [row['name'] for row in table['rows']]
        assert {OPTIMISER, CLAIRVOYANT} < set(names)
        assert len(names) == 8 + 2
        ours = next(row for row in table['rows'] if row['name'] == OPTIMISER)
        assert set(ours['against'][CLAIRVOYANT]) >= {'streaming_mean_iou', 'ratio'}
    assert len(made.rows) == 2 * (3 * 4 + 1)
