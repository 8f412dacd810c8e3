"""What `mmedge up` says of its inputs: soon, once, and again when they come."""

from __future__ import annotations

from hand_made_graph import view

from mmedge_ros.core.data_types import CAMERA, RADAR
from mmedge_ros.preflight.graph_view import ODOMETRY, TopicView
from mmedge_ros.preflight.input_report import PATIENCE, InputReport, InputsNow

BOTH = frozenset({CAMERA, RADAR})


def inputs(*views: tuple[str, TopicView], **fields: object) -> InputsNow:
    return InputsNow(dict(views), {}, **fields)  # type: ignore[arg-type]


def said(report: InputReport, now: InputsNow, until: float, since: float = 0.0) -> list[str]:
    """Everything that is said in a while, looking twice a second."""
    steps = [since + 0.5 * n for n in range(round((until - since) / 0.5) + 1)]
    return [sentence for step in steps for sentence in report.update(now, step)]


def test_what_is_missing_is_said_within_its_patience_and_not_before() -> None:
    report = InputReport(0.0)
    missing = inputs((CAMERA, view(CAMERA)), (RADAR, view(RADAR)))
    assert said(report, missing, PATIENCE - 0.5) == []
    assert said(report, missing, PATIENCE, PATIENCE) == [
        'no pictures: nothing publishes /camera/image; start its driver, or name its topic with '
        '--camera',
        'no radar points: nothing publishes /radar/points; start its driver, or name its topic '
        'with --radar',
    ]


def test_it_is_repeated_once_a_minute_and_at_once_for_another_reason() -> None:
    report = InputReport(0.0)
    assert len(said(report, inputs((CAMERA, view(CAMERA))), 63.0)) == 1
    assert len(said(report, inputs((CAMERA, view(CAMERA))), 65.0, 63.5)) == 1
    silent = inputs((CAMERA, view(CAMERA, 'usb_cam')), idle=frozenset({CAMERA}))
    (sentence,) = said(report, silent, 70.0, 65.5)
    assert 'usb_cam publishes /camera/image and sends nothing' in sentence


def test_an_input_that_comes_is_reported_once_and_only_if_it_was_missed() -> None:
    report = InputReport(0.0)
    radar = (RADAR, view(RADAR, 'r'))
    said(report, inputs((CAMERA, view(CAMERA)), radar, present=frozenset({RADAR})), 5.0)
    there = inputs((CAMERA, view(CAMERA, 'usb_cam')), radar, present=BOTH)
    assert said(report, there, 20.0, 5.5) == ['pictures arrive on /camera/image']


def test_an_input_that_stops_is_reported_as_well() -> None:
    report = InputReport(0.0)
    said(report, inputs((RADAR, view(RADAR, 'r')), present=frozenset({RADAR})), 100.0)
    gone = inputs((RADAR, view(RADAR, 'r')))
    assert said(report, gone, 100.0 + PATIENCE - 0.5, 100.5) == []
    assert len(said(report, gone, 110.0, 100.0 + PATIENCE)) == 1


def test_without_odometry_it_is_said_what_that_means() -> None:
    (sentence,) = said(InputReport(0.0), inputs((ODOMETRY, view(ODOMETRY))), 5.0)
    assert 'tracks move with the drone' in sentence
    assert '--odometry' in sentence


def test_what_decisions_do_without_is_said_once_and_never_without_end() -> None:
    report = InputReport(0.0)
    degraded = ['no odometry: tracks live in x', 'no camera calibration: boxes cannot be placed']
    (sentence,) = said(report, inputs(degraded=degraded), 90.0)
    assert sentence.startswith('no camera calibration')
    assert '--calibration' in sentence
    for contrast in ('0.3', '0.31'):
        again = [f"pictures are unlike the calibration flights': contrast is {contrast}"]
        sentences = said(report, inputs(degraded=[*degraded, *again]), 91.0)
        assert len(sentences) == (contrast == '0.3')
    ever_new = [said(report, inputs(degraded=[f'problem {n}']), 1.0) for n in range(200)]
    assert sum(map(len, ever_new)) < 25
