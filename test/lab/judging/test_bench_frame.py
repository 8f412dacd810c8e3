"""The frame of benches: sums to tables, what is kept, and the pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hand_made_workers import by_seed
from hypothesis import given
from hypothesis import strategies as st

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.bench import (
    Bench,
    BenchRequest,
    Figure,
    Row,
    Subject,
    Sums,
    UnmeasuredError,
    few,
    listed,
)
from mmedge_lab.judging.bench_table import bench_table, shown_tables, table_markdown, write_table
from mmedge_lab.judging.flight_bootstrap import Drawings, drawn_quantiles
from mmedge_lab.judging.run_bench import Judged, judge

FIGURES = {
    'share': Figure('share', 'hits', 'all'),
    'lost': Figure('lost', 'hits', 'all', offset=1.0, scale=-1.0, compared=False),
    'time': Figure('ms', 'seconds', scale=1e3, digits=0, relative=True),
    'median': Figure('median', 'errors', quantile=0.5),
}


def bench(rows: Sequence[Row], subjects: int = 4, **rest: object) -> Bench:
    chosen = tuple(Subject(f'flight {n}', None, str(n)) for n in range(subjects))
    return Bench('Rows', tuple(rows), FIGURES, chosen, **rest)  # type: ignore[arg-type]


def table_of(results: Mapping[str, Sequence[Sums]], **rest: object) -> dict:  # type: ignore[type-arg]
    rows = [Row(name, lambda _: {}) for name in results]
    count = len(next(iter(results.values())))
    return bench_table('example', bench(rows, count, **rest), Judged(results, {}))


def test_a_figure_is_a_quotient_of_sums_and_not_a_mean_of_quotients() -> None:
    content = table_of({'ours': [{'hits': 1.0, 'all': 1.0}, {'hits': 1.0, 'all': 9.0}]})
    values = content['tables'][0]['rows'][0]['values']
    assert values['share']['value'] == pytest.approx(0.2)
    assert values['lost']['value'] == pytest.approx(0.8)
    assert set(content['figures']) == {'share', 'lost'}


def test_a_figure_without_a_divisor_is_a_mean_over_the_subjects_that_have_it() -> None:
    content = table_of({'ours': [{'seconds': 0.1}, {'seconds': 0.3}, {}]})
    assert content['tables'][0]['rows'][0]['values']['time']['value'] == pytest.approx(200.0)


def test_a_subject_without_the_column_above_says_nothing() -> None:
    content = table_of(
        {'ours': [{'all': 9.0}, {'hits': 1.0, 'all': 2.0}], 'other': [{'all': 1.0}] * 2}
    )
    first, second = content['tables'][0]['rows']
    assert first['values']['share']['value'] == pytest.approx(0.5)
    assert second['values'] == {}


def test_a_quantile_is_that_of_all_values_together() -> None:
    content = table_of({'ours': [{'errors': [1.0]}, {'errors': [2.0, 3.0, 4.0, 5.0]}]})
    median = content['tables'][0]['rows'][0]['values']['median']
    assert median['value'] == 3.0
    assert 1.0 <= median['low'] < median['high'] <= 5.0


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.floats(0.0, 1.0))
def test_a_quantile_is_the_same_of_flights_and_of_their_drawings(
    counts: list[int], probability: float
) -> None:
    """Every flight drawn as often as it counts is as if its values were there so often."""
    random = np.random.default_rng(len(counts))
    parts = [random.normal(size=3) for _ in counts]
    drawings = Drawings(np.array([counts, [1] * len(counts)], float), np.arange(len(counts)))
    value, (weighted, once) = drawn_quantiles(parts, probability, drawings)
    assert value == once == pytest.approx(np.quantile(np.concatenate(parts), probability))
    repeated = np.repeat(parts, counts, axis=0).reshape(-1)
    assert weighted == pytest.approx(np.quantile(repeated, probability))


def test_differences_are_paired_and_relative_figures_are_quotients() -> None:
    ours = [{'hits': h, 'all': 10.0, 'seconds': 0.2} for h in (2.0, 5.0, 8.0, 4.0)]
    other = [{'hits': of['hits'] - 1.0, 'all': 10.0, 'seconds': 0.1} for of in ours]
    content = table_of({'ours': ours, 'other': other}, references=('ours',))
    first, second = content['tables'][0]['rows']
    assert first['against'] == {}
    against = second['against']['ours']
    assert against['share'] == pytest.approx({'value': -0.1, 'low': -0.1, 'high': -0.1})
    assert against['time'] == pytest.approx({'value': 0.5, 'low': 0.5, 'high': 0.5})


def test_one_seed_has_no_interval_and_copies_of_a_seed_make_none_narrower() -> None:
    sums = [{'hits': float(n), 'all': 10.0} for n in range(5)]

    def share(seeds: Sequence[str], sums: Sequence[Sums]) -> Mapping[str, float]:
        subjects = tuple(Subject(str(n), None, seed) for n, seed in enumerate(seeds))
        made = Bench('', (Row('ours', lambda _: {}),), FIGURES, subjects)
        content = bench_table('example', made, Judged({'ours': sums}, {}))
        return content['tables'][0]['rows'][0]['values']['share']  # type: ignore[no-any-return]

    assert share('aaaaa', sums)['low'] is None
    assert share('abcde', sums) == share('abcdeabcdeabcde', [*sums, *sums, *sums])


def test_groups_have_tables_and_references_of_their_own() -> None:
    rows = [Row(name, lambda _: {}, group=group) for group in 'AB' for name in ('ours', 'other')]
    results = {
        row.key: [{'hits': float(n + k), 'all': 10.0} for k in range(4)]
        for n, row in enumerate(rows)
    }
    made = bench(rows, references=('ours',))
    tables = bench_table('example', made, Judged(results, {}))['tables']
    assert [t['title'] for t in tables] == ['A', 'B']
    assert [t['subjects'] for t in tables] == [4, 4]
    assert tables[1]['rows'][0]['values']['share']['value'] == pytest.approx(0.35)
    assert tables[1]['rows'][1]['against']['ours']['share']['value'] == pytest.approx(0.1)


def test_rows_are_ordered_by_a_figure_and_only_the_best_are_shown_beside_references() -> None:
    results = {name: [{'hits': float(name), 'all': 10.0}] for name in '13572'}
    rows = table_of(results, references=('1',), order='share', shown=2)['tables'][0]['rows']
    assert [row['name'] for row in rows] == ['7', '5', '1']


def test_derived_rows_are_made_of_results() -> None:
    both = Row('both', lambda _: {})
    content = table_of(
        {'a': [{'hits': 1.0, 'all': 2.0}], 'b': [{'hits': 2.0, 'all': 2.0}]},
        derive=lambda results: {both: [{'hits': results['a'][0]['hits'], 'all': 4.0}]},
    )
    assert content['tables'][0]['rows'][2]['values']['share']['value'] == pytest.approx(0.25)


def test_a_derived_row_is_shown_alone_and_all_are_judged_for_it(tmp_path: Path) -> None:
    def doubled(results: Mapping[str, Sequence[Sums]]) -> Mapping[Row, Sequence[Sums]]:
        return {Row('twice'): 4 * [{'hits': 2.0, 'all': 2.0}]} if 'b' in results else {}

    made = bench([Row(name, by_seed) for name in 'abc'], derive=doubled, references=('a',))

    def shown(*names: str) -> list[str]:
        chosen = made.only(names)
        table = bench_table('example', chosen, judge(chosen, tmp_path))['tables'][0]
        return [row['name'] for row in table['rows']]

    assert shown('twice') == ['a', 'twice']
    assert shown('c') == ['a', 'c']
    assert shown() == ['a', 'b', 'c', 'twice']
    with pytest.raises(EvaluationError, match="no row 'd'; there are a, b, c, twice"):
        shown('d')


def test_what_was_judged_is_kept_by_row_subject_and_key(tmp_path: Path) -> None:
    judged: list[str] = []

    def take(name: str, subject: Subject) -> Sums:
        judged.append(f'{name} {subject.name}')
        return {'hits': 1.0, 'all': 2.0}

    rows = [Row(name, partial(take, name)) for name in 'ab']
    assert judge(bench(rows[:1], 2, key='x'), tmp_path).results['a'] == 2 * [
        {'hits': 1.0, 'all': 2.0}
    ]
    judge(bench(rows, 2, key='x'), tmp_path)
    judge(bench(rows[:1], 2, key='x'), tmp_path)
    assert judged == ['a flight 0', 'a flight 1', 'b flight 0', 'b flight 1']
    judge(bench(rows[1:], 1, key='y'), tmp_path)
    assert judged[4:] == ['b flight 0']
    (tmp_path / 'flight 0.json').write_text('{')
    judge(bench(rows[1:], 1, key='y'), tmp_path)
    assert judged[5:] == ['b flight 0']


def test_a_changed_flight_is_judged_anew(tmp_path: Path) -> None:
    judged: list[Path | None] = []
    flight = tmp_path / 'flight'
    flight.mkdir()

    def take(subject: Subject) -> Sums:
        judged.append(subject.path)
        return {}

    made = Bench('', (Row('a', take),), FIGURES, (Subject('flight', flight),), key='x')
    for content in ('one', 'one', 'two'):
        (flight / 'bag').write_text(content)
        judge(made, tmp_path / 'kept')
    assert len(judged) == 2


def test_flights_of_one_name_are_refused(tmp_path: Path) -> None:
    subjects = tuple(Subject('flight', tmp_path / of / 'flight') for of in ('one', 'other'))
    made = Bench('', (Row('a', by_seed),), FIGURES, subjects, key='x')
    with pytest.raises(EvaluationError, match=r'one/flight and .*other/flight have one name'):
        judge(made, tmp_path)


def test_a_row_that_cannot_be_measured_is_named_and_the_others_are_shown(tmp_path: Path) -> None:
    def missing(_: Subject) -> Sums:
        raise UnmeasuredError('the package is not installed')

    made = bench([Row('a', missing), Row('b', by_seed)])
    content = bench_table('example', made, judge(made, tmp_path))
    assert content['notes'] == ['a: not measured: the package is not installed']
    assert [bool(row['values']) for row in content['tables'][0]['rows']] == [False, True]


def test_pages_hold_every_figure_of_the_table(tmp_path: Path) -> None:
    results = {'ours': [{'hits': 1.0, 'all': 4.0}, {'hits': 3.0, 'all': 4.0}]}
    content = table_of(results | {'<b>': results['ours']}, references=('ours',))
    markdown = table_markdown(content)
    assert '| ours | 0.500 (0.250 to 0.750) |' in markdown
    assert 'software: 0.' in markdown
    assert '| <b> | +0.000 (+0.000 to +0.000) |' in markdown
    assert '2 seeds, 95 % intervals' in markdown
    write_table(content, tmp_path)
    page = (tmp_path / 'example.html').read_text()
    assert '0.500 (0.250 to 0.750)' in page
    assert '&lt;b&gt;' in page
    assert json.loads((tmp_path / 'example.json').read_text()) == content
    assert (tmp_path / 'example.md').read_text() == markdown
    values, against = shown_tables(content)
    assert (against.title, against.head) == ('against ours', ('', 'share, difference'))
    assert len(values.head) == len(against.head) + 1


def test_rows_and_inputs_that_are_not_there_are_named() -> None:
    made = bench([Row(name, by_seed) for name in 'abc'], references=('a',))
    assert made.only(()).rows == made.rows
    assert [row.name for row in made.only(('b',)).rows] == ['a', 'b']
    with pytest.raises(EvaluationError, match="no row 'd'; there are a, b, c"):
        made.only(('d',))
    with pytest.raises(EvaluationError, match='name flights'):
        BenchRequest().flights()
    with pytest.raises(EvaluationError, match='name a table'):
        BenchRequest().input(0, 'a table')


@pytest.mark.parametrize('text', ['', '4', '101', 'half', '50,', 'nan', '64%'])
def test_numbers_of_a_setting_are_listed_by_commas(text: str) -> None:
    assert listed('shares', '100, 64', 5.0, 100.0) == (100.0, 64.0)
    with pytest.raises(EvaluationError, match='is no number from 5 to 100'):
        listed('shares', text, 5.0, 100.0)


def test_few_flights_are_spread_over_a_set() -> None:
    flights = [Path(str(n)) for n in range(10)]
    assert few(flights, 2) == (Path('0'), Path('5'))
    assert few(flights, 99) == tuple(flights)
