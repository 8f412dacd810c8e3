"""The page: self-contained, escaped, and in plain words."""

import re
from dataclasses import replace

import numpy as np
import pytest
from page_outline import PageOutline

from mmedge_ros.report.figure_style import FigureFile, Readout, Series
from mmedge_ros.report.page import milliseconds, number, percent
from mmedge_ros.report.report import MEMORY_MARK, VIDEO_MARK, report_of
from mmedge_ros.report.report_page import (
    headline,
    recording_name,
    render_run_page,
    summary,
)
from mmedge_ros.report.top_view import top_view
from mmedge_ros.report.trajectories import trajectories

FIGURE = FigureFile('latency.png', b'PNG', 'Latency', 'What is seen', 'A chart', b'SMALL')


def page_of(record, figures=()):
    return render_run_page(report_of(record), figures)


def words_of(record, **more):
    return PageOutline(page_of(record, **more)).words


def test_nothing_outside_the_file_is_needed(build_run):
    outline = PageOutline(page_of(build_run(1.0), figures=[FIGURE]))
    assert outline.tags.count('script') == 1
    assert outline.tags.count('img') == 2


def test_there_is_room_for_what_is_written_after_the_report(build_run):
    page = page_of(build_run(1.0))
    assert [page.count(mark) for mark in (VIDEO_MARK, MEMORY_MARK)] == [1, 1]


def test_texts_from_outside_are_escaped_everywhere(build_run):
    evil = '<script>alert(1)</script>"\'><img src=x onerror=y>'
    record = build_run(1.0)
    decisions = [
        replace(
            decision,
            tracks=tuple(replace(t, label=evil, seen_by=(evil,)) for t in decision.tracks),
            late=(evil,),
            degraded=(evil,),
            newest_ns={evil: decision.state_ns},
        )
        for decision in record.decisions
    ]
    record = replace(
        record,
        bag=evil,
        mode=evil,
        profile=evil,
        frame_id=evil,
        decisions=decisions,
        problems=[evil],
        software={evil: evil},
        resources={evil: 1.0},
    )
    figure = FIGURE._replace(caption=evil, alternative=evil, title=evil)
    outline = PageOutline(page_of(record, figures=[figure]))
    assert outline.tags.count('script') == 1
    assert outline.text.count('<script>alert(1)</script>') >= 8


def test_the_headline_has_the_figures_people_ask_for(build_run):
    report = report_of(build_run(4.0))
    tiles = {tile.name: tile for tile in headline(report)}
    assert tiles['decisions'].value == '36'
    assert tiles['decisions'].note == 'of 37 windows, 1 dropped'
    assert tiles['latency, median'].value == f'{report["latency_ms"]["p50"]:.1f} ms'
    assert tiles['latency, p95'].value == f'{report["latency_ms"]["p95"]:.1f} ms'
    assert tiles['camera age, p95'].value == f'{report["age_ms"]["camera"]["p95"]:.1f} ms'
    assert tiles['deadline misses'].value == '0.0\N{NO-BREAK SPACE}%'
    assert tiles['ids given'].value == '2'


@pytest.mark.parametrize(
    ('mode', 'profile', 'words'),
    [
        ('live', '', 'Live run: the recording was played in real time'),
        ('offline', '', 'service times measured on this machine'),
        ('offline', 'xavier', 'service times taken from the profile xavier'),
        ('rehearsal', '', 'Run of kind rehearsal.'),
    ],
)
def test_the_summary_says_what_the_run_was(build_run, mode, profile, words):
    record = replace(build_run(1.0), mode=mode, profile=profile)
    said = summary(report_of(record))
    assert words in said
    assert 'The first 5 decisions are left out' in said
    assert 'The first decision is left out' in summary(report_of(replace(record, warmup=1)))
    assert 'left out' not in summary(report_of(replace(record, warmup=0)))


def test_a_thousand_problems_are_folded_away_and_counted(build_run):
    page = page_of(replace(build_run(1.0), problems=[f'problem {i}' for i in range(1000)]))
    before, folded = page.split('<details class="more">')
    head, listed = before.split('What was wrong in the input')
    assert len(re.findall(r'problem \d+', head)) == 3
    assert len(re.findall(r'problem \d+', listed)) == 8
    assert len(re.findall(r'problem \d+', folded)) == 300
    assert '992 more' in folded
    assert '692 further lines are in report.json' in folded


def test_equal_problems_stand_there_once(build_run):
    words = words_of(replace(build_run(1.0), problems=['cut', 'late', 'cut', 'cut']))
    assert 'cut (3 times) late' in words


def test_units_and_tracks_are_tabled(build_run):
    words = words_of(build_run(4.0))
    assert 'received seen by the encoder 80 80' in words
    assert re.search(r'1 person 0\.5 3\.5 3\.\d\d 36 camera 100 %, radar 100 %', words)


def test_many_tracks_are_cut_with_a_word_about_the_rest(build_run):
    record = build_run(1.0)
    first = record.decisions[0]
    crowd = tuple(replace(first.tracks[0], id=i) for i in range(3000, 3500))
    words = words_of(replace(record, decisions=[replace(first, tracks=crowd)], warmup=0))
    assert 'These are the 40 longest of 500 tracks' in words


def test_early_decisions_are_counted(build_run):
    record = build_run(4.0)
    assert 'early' not in words_of(record)
    changed = [
        replace(decision, published_ns=decision.window_end_ns - 1) for decision in record.decisions
    ]
    tiles = headline(report_of(replace(record, decisions=[*changed[:4], *record.decisions[4:]])))
    (tile,) = [tile for tile in tiles if tile.name == 'decisions']
    assert tile.note == 'of 37 windows, 1 dropped, 4 early'


def test_a_run_without_decisions_says_so(empty_run):
    assert 'No decision was published' in words_of(empty_run)


def test_names_and_numbers_are_written_for_people():
    assert recording_name('/data/night_walk/') == 'night_walk'
    assert recording_name('') == 'recording'
    assert number(12345.678, 1, ' s') == '12,345.7 s'
    assert number(None) == percent(None) == milliseconds(None) == '–'
    assert [milliseconds(v) for v in (2.345, 50.0, 234.5)] == ['2.3 ms', '50 ms', '234 ms']
    assert percent(0.125) == '12.5\N{NO-BREAK SPACE}%'


@pytest.mark.parametrize(
    'label', ['</script><script>alert(1)</script>', '<!--<script>', '\udcff\u2028']
)
def test_data_in_the_page_cannot_end_their_script(build_run, label):
    record = build_run(1.0)
    decisions = [
        replace(d, tracks=tuple(replace(t, label=label) for t in d.tracks))
        for d in record.decisions
    ]
    record = replace(record, decisions=decisions)
    tracks = trajectories(record)
    view = top_view(record, tracks)
    readout = Readout(np.arange(3.0), [Series(label, label, np.array([1.0, np.nan, np.inf]))])
    figures = [FIGURE._replace(readout=readout), FIGURE._replace(name='tracks.png')]
    page = render_run_page(report_of(record), figures, view=view.content())
    outline = PageOutline(page)
    assert outline.tags.count('script') == 3
    first, second = outline.data
    assert {way['label'] for way in first['ways']} == {label[:40]}
    assert second['series'] == [[label, label, [1.0, None, None]]]


def test_every_section_is_in_the_contents_and_those_that_matter_are_open(build_run):
    outline = PageOutline(page_of(build_run(1.0), figures=[FIGURE]))
    links = [value for tag, name, value in outline.attributes if (tag, name) == ('a', 'href')]
    sections = [
        value for tag, name, value in outline.attributes if (tag, name) == ('details', 'id')
    ]
    assert [link.removeprefix('#') for link in links] == sections
    assert sections == ['latency', 'tracks', 'units-and-stages', 'input', 'details']
    assert sum(tag == 'details' and name == 'open' for tag, name, _ in outline.attributes) == 2
    assert '::details-content { display: block' in page_of(build_run(1.0))


def test_the_page_begins_with_what_happened_and_what_was_missing(build_run):
    record = replace(build_run(4.0), problems=['radar: nothing usable in the last 3 s'])
    record.units['camera'].dropped = 20
    words = words_of(record)
    assert words.index('people were tracked at once') < words.index('latency, median')
    assert '25 % of the pictures were dropped: encoding took too long. A smaller model' in words
    assert words.index('radar: nothing usable in the last 3 s') < words.index('latency, median')
