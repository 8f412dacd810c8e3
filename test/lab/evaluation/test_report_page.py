"""The page: self-contained, escaped, and in plain words."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from mmedge_ros.lab.evaluation.box_comparison import BoxesComparison
from mmedge_ros.lab.evaluation.report import report_of
from mmedge_ros.lab.evaluation.report_page import (
    headline,
    recording_name,
    render_run_page,
    summary,
)
from mmedge_ros.lab.reporting.figure_style import FigureFile
from mmedge_ros.lab.reporting.page import number, percent

FIGURE = FigureFile('latency.png', b'PNG', 'Latency', 'What is seen', 'A chart', b'SMALL')
VOID = {'meta', 'link', 'img', 'br'}


class Outline(HTMLParser):
    """Collects tags and visible text, and checks that every element is closed."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.open, self.text = [], [], [], ''
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or '') for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.text += ' ' if tag not in ('b', 'span') else ''

    def handle_data(self, data):
        if self.open and self.open[-1] not in ('style', 'title'):
            self.text += data


def page_of(record, comparison=None, figures=()):
    return render_run_page(report_of(record, comparison), figures)


def words_of(record, **more):
    return ' '.join(Outline(page_of(record, **more)).text.split())


def test_nothing_outside_the_file_is_needed(build_run):
    page = page_of(build_run(1.0), figures=[FIGURE])
    outline = Outline(page)
    assert not {'script', 'iframe', 'object', 'form', 'a'} & set(outline.tags)
    for _, name, value in outline.attributes:
        if name in ('src', 'href', 'srcset'):
            assert value.startswith('data:')
    assert '@import' not in page
    assert 'url(' not in page


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
    outline = Outline(page_of(record, figures=[figure]))
    assert 'script' not in outline.tags
    assert not [a for a in outline.attributes if a[1] == 'onerror']
    assert outline.text.count('<script>alert(1)</script>') >= 8


def test_the_images_are_inside(build_run):
    page = page_of(build_run(1.0), figures=[FIGURE])
    assert 'data:image/png;base64,UE5H"' in page
    assert 'data:image/png;base64,U01BTEw="' in page
    assert 'What is seen' in page


def test_the_headline_has_the_figures_people_ask_for(build_run):
    report = report_of(build_run(4.0))
    tiles = {tile.name: tile for tile in headline(report)}
    assert tiles['decisions'].value == '36'
    assert tiles['decisions'].note == 'of 37 windows, 1 dropped'
    assert tiles['latency, median'].value == f'{report["latency_ms"]["p50"]:.1f} ms'
    assert tiles['latency, p95'].value == f'{report["latency_ms"]["p95"]:.1f} ms'
    assert tiles['camera age, p95'].value == f'{report["age_ms"]["camera"]["p95"]:.1f} ms'
    assert tiles['deadline misses'].value == '0.0\N{NO-BREAK SPACE}%'
    assert tiles['tracks'].value == '2'


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
    said = summary(report_of(replace(build_run(1.0), mode=mode, profile=profile)))
    assert words in said
    assert 'The first 5 decisions are left out' in said


@pytest.mark.parametrize(('warmup', 'words'), [(0, None), (1, 'The first decision is left out')])
def test_the_summary_counts_the_warm_up(build_run, warmup, words):
    said = summary(report_of(replace(build_run(1.0), warmup=warmup)))
    assert (words in said) if words else ('left out' not in said)


def test_a_sound_input_is_said_to_be_one(build_run):
    words = words_of(replace(build_run(1.0), problems=[]))
    assert 'What was wrong in the input Nothing.' in words


def test_a_thousand_problems_are_folded_away_and_counted(build_run):
    page = page_of(replace(build_run(1.0), problems=[f'problem {i}' for i in range(1000)]))
    before, folded = page.split('<details>')
    assert len(re.findall(r'problem \d+', before)) == 8
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


def test_a_comparison_is_called_one_with_pseudo_labels(build_run):
    nan = float('nan')
    result = BoxesComparison(0.9, nan, 3, 0.95, 0.04, 40, 100, 110, 90, 80, 0, 39, 1, 2)
    words = words_of(build_run(1.0), comparison=result)
    assert 'They are pseudo-labels, not ground truth' in words
    assert 'coverage 90.0 %' in words
    assert 'precision –' in words
    assert '2 frames of the box file are not in the recording' in words
    assert 'Comparison' not in words_of(build_run(1.0))


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
    assert number(None) == percent(None) == '–'
    assert percent(0.125) == '12.5\N{NO-BREAK SPACE}%'


def test_paper_is_always_light_and_never_cuts_a_figure(build_run):
    css = page_of(build_run(1.0)).split('<style>')[1].split('</style>')[0]
    paper = css.split('@media print')[1]
    assert 'break-inside: avoid' in paper
    assert all('screen' in rule for rule in re.findall(r'@media ([^{]*)\{', css) if 'dark' in rule)
