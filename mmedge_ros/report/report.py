"""The report folder of a run: figures for people, stable keys for other tools.

The logs of decisions and of updates have one JSON object per line. Floats are rounded (0.1 mm,
0.01 px), so that equal runs give equal files, byte for byte.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from mmedge_ros.core.data_types import NS_PER_S, Cue, Decision, LabelSource, Track, TrackLabel
from mmedge_ros.core.plain_values import plain_values
from mmedge_ros.core.run_record import RunRecord, UnitCounts
from mmedge_ros.report.accuracy import Accuracy, accuracy_of
from mmedge_ros.report.glance import glance_figures, limits, sentences
from mmedge_ros.report.placement import placement_of
from mmedge_ros.report.radar_detection import radar_detection
from mmedge_ros.report.report_files import REPORT, kept_content, write_files
from mmedge_ros.report.report_pictures import NO_PICTURES, PICTURE_NAMES, RunPictures
from mmedge_ros.report.run_metrics import (
    critical_age_ms,
    energy_report,
    latency_metrics,
    modalities_of,
)
from mmedge_ros.report.trajectories import (
    Trajectory,
    configurations_in_order,
    start_ns,
    trajectories,
)

DECISIONS, UPDATES = 'decisions.jsonl', 'updates.jsonl'
PAGE = 'report.html'
# Where the page has room for links to what is written after the report.
VIDEO_MARK, MEMORY_MARK = '<!-- video -->', '<!-- memory -->'
_DIGITS = 6
_MOST_CONFIGURATIONS = 1000
_MOST_NOVELTIES = 200
_UPPER = np.triu_indices(6)
_CUES = {'ground': Cue.GROUND, 'radar': Cue.RADAR, 'size': Cue.SIZE}


def rounded(value: float, digits: int) -> float | None:
    """Round for a file: None where the value is not finite, and never a negative zero."""
    number = float(value)
    return round(number, digits) + 0.0 if math.isfinite(number) else None


def decision_lines(decisions: Iterable[Decision], scale: float = 1.0) -> str:
    """Return the text of a decision log.

    :param scale: how much larger the recording's own pictures are than those of the boxes
    """
    return ''.join(
        json.dumps(_decision_object(decision, scale), allow_nan=False, separators=(',', ':'))
        + '\n'
        for decision in decisions
    )


def _decision_object(decision: Decision, scale: float) -> dict[str, Any]:
    newest = sorted(decision.newest_ns.items())
    return {
        'window_end_ns': int(decision.window_end_ns),
        'state_ns': int(decision.state_ns),
        'published_ns': int(decision.published_ns),
        'frame_id': decision.frame_id,
        'latency_ms': rounded(decision.latency * 1e3, 6),
        'ages_ms': {m: rounded((decision.published_ns - ns) / 1e6, 6) for m, ns in newest},
        'newest_ns': {m: int(ns) for m, ns in newest},
        'critical_age_ms': rounded(critical_age_ms(decision), 6),
        'configuration_ids': [int(number) for number in decision.configuration_ids],
        'skipped': list(decision.skipped),
        'lost': list(decision.lost),
        'late': list(decision.late),
        'degraded': list(decision.degraded),
        'tracks': [_track_object(track, decision.frame_id, scale) for track in decision.tracks],
        'trail': [[s.stage, int(s.begin_ns), int(s.end_ns)] for s in decision.trail],
    }


def _track_object(track: Track, frame_id: str, scale: float) -> dict[str, Any]:
    box, projected = (
        of and [rounded(edge * scale, 2) for edge in of] for of in (track.box, track.projected)
    )
    covariance = np.asarray(track.covariance, np.float64)[_UPPER].tolist()
    return {
        'id': int(track.id),
        'label': track.label,
        'score': rounded(track.score, 4),
        'box': box,
        'projected': projected,
        'cues': [name for name, cue in _CUES.items() if cue in track.cues],
        'box_velocity': [rounded(speed * scale, 2) for speed in track.box_velocity],
        'position': [rounded(value, 4) for value in track.position],
        'velocity': [rounded(value, 4) for value in track.velocity],
        'covariance': [rounded(value, 8) for value in covariance],
        'frame_id': frame_id,
        'seen_by': list(track.seen_by),
        'age_ms': rounded(track.age * 1e3, 3),
        **_recognised_object(track.recognised),
    }


def _recognised_object(known: TrackLabel | None) -> dict[str, Any]:
    if known is None:
        return {}
    return {
        'label_confidence': rounded(known.confidence, 4),
        'label_source': known.source.name.lower(),
        'attributes': list(known.attributes),
        'novel': known.is_novel,
    }


def write_report(
    record: RunRecord, folder: Path, pictures: RunPictures = NO_PICTURES
) -> dict[str, Any]:
    """Write report.json, what was published, figures, pictures and report.html into a folder.

    The folder is made where it is missing; an earlier report in it is replaced, and only once
    the new one has been written in full.

    :return: the content of report.json
    :raises ReportError: when the folder or a file in it cannot be written
    """
    # Drawing takes a second to import, which commands that draw nothing should not pay.
    from mmedge_ros.report.figures import FIGURE_NAMES, draw_figures
    from mmedge_ros.report.report_page import render_run_page
    from mmedge_ros.report.top_view import top_view
    from mmedge_ros.report.video import VIDEO

    tracks = trajectories(record)
    accuracy = accuracy_of(record, record.truth) if record.truth else None
    report = report_of(record, tracks, accuracy)
    view = top_view(record, tracks)
    figures = draw_figures(record, tracks, accuracy, view)
    texts = {
        DECISIONS: decision_lines(record.decisions, record.picture_scale),
        PAGE: render_run_page(report, figures, pictures, view and view.content()),
    }
    if record.updates:
        texts[UPDATES] = decision_lines(record.updates, record.picture_scale)
    files = {figure.name: figure.png for figure in figures} | pictures.files
    files |= {name: text.encode(errors='replace') for name, text in texts.items()}
    # The last one: where it is, the others belong to it.
    files[REPORT] = (json.dumps(report, indent=2, allow_nan=False) + '\n').encode()
    known = (*FIGURE_NAMES, *PICTURE_NAMES, VIDEO, UPDATES)
    write_files(Path(folder), files, [name for name in known if name not in files])
    return report


def link_video(folder: Path, name: str, words: str) -> None:
    """Name a video that was written beside a report in its page.

    :param words: its length and size
    :raises ReportError: when the page cannot be written
    """
    link = f'<a href="{name}">{name}</a>'
    _link(folder, VIDEO_MARK, f'<p>The whole run as a video: {link} ({words})</p>')


def link_memory(folder: Path, name: str) -> None:
    """Name the page of the flight's memory in the page of a report.

    :param name: its path as seen from the folder
    :raises ReportError: when the page cannot be written
    """
    link = f'<a href="./{escape(name)}">search it in words</a>'
    _link(folder, MEMORY_MARK, f'<p>What the flight saw is remembered: {link}.</p>')


def _link(folder: Path, mark: str, text: str) -> None:
    page = (kept_content(folder / PAGE) or b'').decode(errors='replace')
    if mark in page:
        write_files(folder, {PAGE: page.replace(mark, text).encode()})


def report_of(
    record: RunRecord,
    tracks: Sequence[Trajectory] | None = None,
    accuracy: Accuracy | None = None,
) -> dict[str, Any]:
    """Return what report.json holds: JSON values only, null where nothing was measured.

    :param tracks: what `trajectories` finds in the record, where that is known already
    :param accuracy: what `accuracy_of` finds, where that is known already
    """
    metrics = latency_metrics(record)
    modalities = modalities_of(record)
    units = {m: dataclasses.asdict(_unit_counts(record, m)) for m in modalities}
    tracks = trajectories(record) if tracks is None else tracks
    if accuracy is None and record.truth is not None:
        accuracy = accuracy_of(record, record.truth)
    report = {
        'bag': record.bag,
        'mode': record.mode,
        'profile': record.profile,
        'frame_id': record.frame_id,
        'duration_s': record.duration,
        'wall_time_s': record.wall_time,
        'window_ms': record.window * 1e3,
        'stride_ms': record.stride * 1e3,
        'windows': record.windows,
        'decisions': len(record.decisions),
        # Published before their windows ended, because a gate was sure enough.
        'early': sum(decision.latency < 0.0 for decision in record.decisions),
        'dropped': record.dropped,
        # Published between decisions; no latency, deadline or count of decisions holds them.
        'updates': len(record.updates),
        'warmup_decisions': len(record.decisions) - metrics.decisions,
        'measured_decisions': metrics.decisions,
        'latency_ms': dataclasses.asdict(metrics.latency_ms),
        'age_ms': {m: dataclasses.asdict(age) for m, age in metrics.age_ms.items()},
        'critical_age_ms': dataclasses.asdict(metrics.critical_age_ms),
        'deadline_ms': record.deadline * 1e3,
        'deadline_miss_rate': metrics.deadline_miss_rate,
        'stages_ms': {n: {'p50': q.p50, 'p95': q.p95} for n, q in metrics.stages_ms.items()},
        'encoder_calls': {m: units[m]['encoded'] for m in modalities},
        'units': units,
        'at_a_glance': glance_figures(record, tracks, accuracy),
        'decisions_with': _decisions_with(record),
        'configurations': _configurations(record),
        'tracks': [_track_summary(track) for track in tracks],
        'accuracy': None if accuracy is None else accuracy.report() | _placement(record),
        'tracking': None if accuracy is None else accuracy.tracking_report(),
        'radar_detection': radar_detection(record),
        'recognition': _recognition(record),
        'problems': [*record.problems, *(accuracy.problems if accuracy else ())],
        'energy': energy_report(record),
        'resources': {'cpu_s': None, 'peak_rss_mb': None} | record.resources,
        'software': {'version': None, 'git': None, 'bundle': None} | record.software,
    }
    plain: dict[str, Any] = plain_values(report, _DIGITS)
    plain['at_a_glance'] |= {
        'sentences': sentences(plain),
        'limits': [limit._asdict() for limit in limits(plain)],
    }
    return plain


def _placement(record: RunRecord) -> dict[str, Any]:
    return placement_of(record, record.truth).report() if record.truth else {}


def _unit_counts(record: RunRecord, modality: str) -> UnitCounts:
    if modality in record.units:
        return record.units[modality]
    return UnitCounts(encoded=sum(unit.modality == modality for unit in record.features))


def _decisions_with(record: RunRecord) -> dict[str, dict[str, int]]:
    """Count the decisions by what they had to do without, and for which modality or why."""
    return {
        name: dict(sorted(Counter(x for d in record.decisions for x in getattr(d, name)).items()))
        for name in ('late', 'lost', 'skipped', 'degraded')
    }


def _configurations(record: RunRecord) -> list[dict[str, Any]]:
    """Return every configuration: when, what, why, and how many decisions have units of it."""
    decisions = Counter(i for decision in record.decisions for i in decision.configuration_ids)
    zero_ns = start_ns(record)
    return [
        {
            'id': configuration.id,
            'from_s': (configuration.effective_from_ns - zero_ns) / NS_PER_S,
            'modalities': {
                part.modality: {'rate': part.rate, 'level': part.level, 'reuse': part.reuse}
                for part in configuration.modalities
            },
            'latency_limit_ms': 1e3 * configuration.latency_limit,
            'predicted_latency_ms': 1e3 * configuration.predicted_latency,
            'predicted_accuracy': configuration.predicted_accuracy,
            'reason': configuration.reason,
            'decisions': decisions[configuration.id],
        }
        for configuration in configurations_in_order(record)[:_MOST_CONFIGURATIONS]
    ]


def _track_summary(track: Trajectory) -> dict[str, Any]:
    ranges = track.ranges[np.isfinite(track.ranges)]
    return {
        'id': track.id,
        'label': track.label,
        'decisions': len(track.times),
        'first_s': float(track.times[0]),
        'duration_s': track.duration,
        'median_range_m': float(np.median(ranges)) if len(ranges) else math.nan,
        'seen_by': track.seen_by,
    }


def _recognition(record: RunRecord) -> dict[str, Any] | None:
    """Return where labels were from, and the first novelties; None without a recogniser.

    ``labels`` counts each track in each decision: by the detector, by a look in full, recalled by
    the semantic memory, or reused from an earlier look. ``at_s`` of a novelty is since the first
    decision.
    """
    sources = Counter(
        track.recognised.source if track.recognised else LabelSource.DETECTOR
        for decision in record.decisions
        for track in decision.tracks
    )
    if not record.novelties and not record.recognition and set(sources) <= {LabelSource.DETECTOR}:
        return None
    begin_ns = record.decisions[0].window_end_ns if record.decisions else 0
    return {
        'labels': {source.name.lower(): sources[source] for source in LabelSource},
        'novelties': [
            {
                'at_s': round((novelty.stamp_ns - begin_ns) / NS_PER_S, 2),
                'track': novelty.track_id,
                'label': novelty.label,
                'confidence': novelty.confidence,
                'position': [float(value) for value in novelty.position],
                'reason': novelty.reason,
            }
            for novelty in record.novelties[:_MOST_NOVELTIES]
        ],
        'recogniser': dict(record.recognition),
    }
