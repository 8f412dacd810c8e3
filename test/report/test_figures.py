"""Figures: what is drawn, what is not, and that nothing foreign breaks them."""

import struct
import warnings
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from mmedge_ros.core.data_types import Configuration, ModalityConfiguration, StageTiming
from mmedge_ros.core.run_record import UnitCounts
from mmedge_ros.monitoring.system_state import SystemState
from mmedge_ros.report.figure_style import printable
from mmedge_ros.report.figures import (
    CONFIGURATIONS,
    FIGURE_NAMES,
    NEES,
    STREAM,
    draw_configurations,
    draw_course,
    draw_figures,
    draw_latency,
    draw_ranges,
    name_levels,
)
from mmedge_ros.report.report import report_of
from mmedge_ros.report.top_view import draw_top_view, top_view
from mmedge_ros.report.trajectories import trajectories

START_NS = 1_700_000_000_000_000_000


def size_of(png):
    assert png[:8] == b'\x89PNG\r\n\x1a\n'
    return struct.unpack('>II', png[16:24])


def changed(record, **fields):
    """The record with some fields of every track changed."""
    decisions = [
        replace(decision, tracks=tuple(replace(t, **fields) for t in decision.tracks))
        for decision in record.decisions
    ]
    return replace(record, decisions=decisions)


def from_above(record):
    return draw_top_view(top_view(record, trajectories(record)))


def every_figure(record):
    tracks = trajectories(record)
    return draw_figures(record, tracks, None, top_view(record, tracks))


def test_every_figure_is_drawn_with_a_caption_and_a_word_for_those_who_cannot_see(build_run):
    record = build_run(2.0)
    figures = every_figure(record)
    absent = (STREAM, NEES, CONFIGURATIONS)
    expected = tuple(name for name in FIGURE_NAMES if name not in absent)
    assert tuple(figure.name for figure in figures) == expected
    for figure in figures:
        width, height = size_of(figure.png)
        assert width >= 700
        assert height >= 500
        assert len(figure.caption) > 60
        assert figure.alternative
    assert size_of(figures[0].narrow)[0] < size_of(figures[0].png)[0]


def test_nothing_is_drawn_of_a_run_in_which_nothing_happened(empty_run):
    assert every_figure(empty_run) == []


def test_one_modality_is_enough(build_run):
    record = build_run(2.0)
    decisions = [replace(d, newest_ns={'radar': d.newest_ns['radar']}) for d in record.decisions]
    only = replace(record, decisions=decisions, units={'radar': UnitCounts(received=3)})
    assert len(every_figure(only)) == 3


def test_the_caption_explains_box_heights_or_says_that_there_is_nothing_to_compare(build_run):
    record = build_run(2.0)
    assert '1.68 m / box height' in draw_ranges(record, trajectories(record)).caption
    assert 'camera' in top_view(record, trajectories(record)).fields
    without = replace(record, camera=None, camera_pose=None)
    figure = draw_ranges(without, trajectories(without))
    assert 'without camera calibration' in figure.caption
    assert 'camera' not in top_view(without, trajectories(without)).fields


def test_many_tracks_are_named_as_far_as_there_is_room(build_run):
    record = build_run(2.0)
    first = record.decisions[0]
    crowd = tuple(
        replace(first.tracks[0], id=i, position=np.array([3.0 + i / 1e3, i / 1e3, 0.0]))
        for i in range(1000, 3000)
    )
    tracks = trajectories(replace(record, decisions=[replace(first, tracks=crowd)]))
    assert 'Only the 12 longest of 2000 tracks' in draw_ranges(record, tracks).caption


@pytest.mark.parametrize('value', [np.nan, np.inf, 1e300])
def test_tracks_that_diverged_are_not_drawn_but_counted(build_run, value):
    record = build_run(1.0)
    lost = changed(record, position=np.full(3, value))
    assert from_above(lost) is None
    assert draw_ranges(lost, trajectories(lost)) is None
    first = record.decisions[0]
    half = (first.tracks[0], replace(first.tracks[1], position=np.full(3, value)))
    tracks = trajectories(replace(record, decisions=[replace(first, tracks=half)]))
    caption = draw_ranges(record, tracks).caption
    assert '1 tracks without a usable position are not drawn' in caption


@pytest.mark.parametrize('value', [np.nan, np.inf, -1.0, 0.0, 1e300])
def test_a_covariance_that_is_none_draws_no_ellipse(build_run, value):
    record = changed(build_run(1.0), covariance=np.full((6, 6), value))
    assert size_of(from_above(record).png)


def test_foreign_names_are_drawn_as_they_are(build_run):
    names = ('$x_', r'\frac{', 'a\nb\0', '\udcff', '雷达', '$' * 300)
    record = build_run(1.0)
    trail = tuple(StageTiming(name, i, i + 5_000_000) for i, name in enumerate(names))
    decisions = [
        replace(d, trail=trail, newest_ns=dict.fromkeys(names, d.state_ns))
        for d in record.decisions
    ]
    odd = replace(record, decisions=decisions, units={name: UnitCounts(5) for name in names})
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert len(every_figure(odd)) == 3


def test_a_printable_name_is_short_and_without_formulas():
    assert printable('encode') == 'encode'
    assert printable('a$b\n') == r'a\$b?'
    assert len(printable('x' * 99)) == 24


def test_very_many_decisions_are_drawn_as_bands(build_run):
    record = build_run(2.0)
    many = replace(record, decisions=record.decisions * 200)
    figure = draw_latency(many)
    assert 'Bands' in figure.caption
    assert len(figure.readout.content()['t']) <= 1500, 'more cannot be pointed at'
    assert 'Bands' not in draw_latency(record).caption


@pytest.mark.parametrize('late_ns', [10**12, -(10**12)])
def test_a_published_time_that_is_far_off_does_not_break_the_figure(build_run, late_ns):
    record = build_run(1.0)
    odd = replace(record.decisions[2], published_ns=record.decisions[2].published_ns + late_ns)
    decisions = [*record.decisions[:2], odd, *record.decisions[3:]]
    assert size_of(draw_latency(replace(record, decisions=decisions, warmup=0)).png)


@pytest.mark.parametrize('states', [True, False])
def test_the_course_of_configurations_is_drawn_and_told(build_run, states):
    record = build_run(4.0)
    begin_ns = record.decisions[0].window_end_ns
    record.configurations = [
        Configuration(
            number,
            begin_ns + number * 10**9,
            (ModalityConfiguration('camera', rate, level),),
            limit,
            0.03,
            reason=f'because of ${number}',
        )
        for number, rate, level, limit in ((1, 30.0, 'large', 0.05), (2, 10.0, 'small', np.nan))
    ]
    if states:
        battery = SystemState(
            voltage=15.0, current=3.0, power=45.0, cpu=(40.0, 60.0), gpu=30.0, module_power=9.0
        )
        record.states = [(begin_ns, SystemState()), (begin_ns + 10**9, battery)]
    figure = draw_configurations(record)
    assert size_of(figure.png)[0] >= 700
    series = {name: values for name, _, values in figure.readout.content()['series']}
    # The second configuration begins 2 s, that is 20 windows, after the first of them.
    assert series['camera rate'][:22] == [30.0] * 20 + [10.0] * 2
    assert series['limit'][19:21] == [50.0, None]
    first, second = report_of(record)['configurations']
    assert first['modalities'] == {'camera': {'rate': 30.0, 'level': 'large', 'reuse': 1}}
    assert (second['id'], second['reason']) == (2, 'because of $2')
    assert second['from_s'] - first['from_s'] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ('changed_at', 'written'),
    [
        ([0.0, 50.0], ['small', 'large']),
        ([0.0, 1.0], ['large']),
        ([0.0], ['small']),
        ([0.0, 50.0, 80.0], ['small', 'large']),  # a sensor without levels has none
    ],
)
def test_only_levels_that_last_are_named_so_that_names_never_overlap(changed_at, written):
    axes = Figure().add_subplot()
    parts = [(10.0, 'small'), (10.0, 'large'), (20.0, '')][: len(changed_at)]
    name_levels(axes, np.array([*changed_at, 100.0]), parts, 'black')
    assert [text.get_text() for text in axes.texts] == written


def test_the_share_of_pictures_that_is_encoded_is_named_beside_the_level():
    axes = Figure().add_subplot()
    course = [
        Configuration(number, 0, (ModalityConfiguration('camera', 30.0, 'medium', reuse=reuse),))
        for number, reuse in enumerate((1, 3))
    ]
    draw_course(axes, np.array([0.0, 50.0, 100.0]), course)
    assert [text.get_text() for text in axes.texts] == ['medium', 'medium 1/3']


def test_a_chart_over_time_can_be_read_where_its_axes_are(build_run):
    record = build_run(2.0)
    figure = draw_latency(record)
    content = figure.readout.content()
    assert content['t'] == [round((d.window_end_ns - START_NS) / 1e9, 2) for d in record.decisions]
    name, unit, values = content['series'][0]
    assert (name, unit) == ('latency', ' ms')
    assert values == pytest.approx([1e3 * d.latency for d in record.decisions], rel=0.01)
    for left, right, top, bottom, first, last in content['frames']:
        assert 0.0 < left < right <= 1.0
        assert 0.0 < top < bottom < 1.0
        assert first < content['t'][0] < content['t'][-1] < last
