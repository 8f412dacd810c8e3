"""The whole beside its rivals: the same flights, networks and service times, another schedule.

A rival is a policy that says which units are encoded when, and when a decision is made of which
(`mmedge_lab.policies`). Each is replayed as a stream, at several shares of the processor, and
those that encode after a window's end also with each window alone, without a backlog.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.accuracy_sums import FIGURES
from mmedge_lab.judging.bench import (
    Bench,
    BenchRequest,
    Figure,
    Row,
    Sums,
    UnmeasuredError,
    listed,
)
from mmedge_lab.judging.judged_flight import FlightOpener, JudgedFlight, bundle_about, bundle_of
from mmedge_lab.policies.policy_run import POLICIES, PolicyRun, levels_needed, run_policy
from mmedge_lab.policies.settings import STATED
from mmedge_lab.policies.steering import Plugins
from mmedge_lab.policies.trained_rivals import bundle_rivals, read_rivals
from mmedge_lab.policies.window_policies import Blocking
from mmedge_ros.core.data_types import CAMERA
from mmedge_ros.report.accuracy_samples import windows_without_decision
from mmedge_ros.report.truth_matching import counted_people

OURS = 'ours'
MS_PER_S = 1e3
_ALONE = 'each window alone'
_FIGURES: Mapping[str, Figure] = {
    **{name: FIGURES[name] for name in ('streaming_mean_iou', 'mean_iou', 'recall', 'precision')},
    'latency_p50': Figure('latency p50, ms', 'latency', digits=1, scale=MS_PER_S, quantile=0.5),
    'latency_p95': Figure('latency p95, ms', 'latency', digits=1, scale=MS_PER_S, quantile=0.95),
    'age_p50': Figure('camera age p50, ms', 'age', digits=1, scale=MS_PER_S, quantile=0.5),
    'age_p95': Figure('camera age p95, ms', 'age', digits=1, scale=MS_PER_S, quantile=0.95),
    'late': Figure('late', 'late', 'decisions'),
    'dropped': Figure('windows dropped', 'dropped', 'windows'),
    'encodes': Figure('pictures encoded / s', 'encoded', 'seconds', 1),
    'processor': Figure('processor, s / s', 'cpu_seconds', 'seconds'),
}


def bench(
    request: BenchRequest,
    *,
    profile: str = '',
    trained: str = '',
    limit: float = 50.0,
    shares: str = '100,64,50',
) -> Bench:
    """Compare ours with its rivals and with itself without each part.

    :param profile: file of service times; a board that is stated, 8, 17 and 30 ms per picture
    :param trained: folder of trained rivals; those of the bundle
    :param limit: latency limit, ms
    :param shares: of the processor, %
    """
    subjects = request.flights()
    bundle = bundle_of(request.detector, profile, STATED)
    rivals = read_rivals(Path(trained), bundle.folder) if trained else bundle_rivals(bundle.folder)
    levels = levels_needed(bundle)[CAMERA]
    rows = [
        Row(
            name,
            partial(_judged, name, share / 100.0, limit / MS_PER_S, False, rivals.plugins),
            group=f'{share:g} % of the processor',
        )
        for share in listed('shares', shares, 1.0, 100.0)
        for name in POLICIES
    ]
    rows += [
        Row(
            name, partial(_judged, name, 1.0, limit / MS_PER_S, True, rivals.plugins), group=_ALONE
        )
        for name, kind in POLICIES.items()
        if isinstance(kind.execution, Blocking)
    ]
    return Bench(
        'The whole beside its rivals',
        tuple(rows),
        _FIGURES,
        subjects,
        FlightOpener(bundle, levels, with_greys=True),
        references=(OURS,),
        key=f'{bundle.digest} {rivals.digest} {limit:g}',
        about={**bundle_about(bundle, subjects), 'latency limit': f'{limit:g} ms'},
    )


def _judged(
    policy: str, share: float, limit: float, alone: bool, plugins: Plugins, of: JudgedFlight
) -> Sums:
    if not POLICIES[policy].aggregates and of.networks is None:
        raise UnmeasuredError('the bundle fuses by rules, so that nothing is aggregated')
    run = run_policy(
        policy,
        of.flight,
        of.bundle,
        alone=alone,
        cpu_share=share,
        latency_limit=limit,
        plugins=plugins,
        networks=of.networks,
    )
    if run.violations:
        raise EvaluationError(
            f'{run.record.bag}: {policy} broke its promise, so that no figure of it means '
            f'anything: {run.violations[0]}'
        )
    return policy_sums(run, of, limit)


def policy_sums(run: PolicyRun, of: JudgedFlight, limit: float) -> Sums:
    """Return the sums of a run; everyone visible at the end of a dropped window is missed.

    :param limit: latency limit, s
    """
    schedule, record, sums = run.schedule, run.record, dict(of.sums(run.record))
    # Those within the decided span are counted by the judgement of the record.
    beyond = set(schedule.dropped) - set(windows_without_decision(record, of.truth))
    frames = filter(None, map(of.truth.frame_at, beyond))
    latencies = [decision.latency for decision in schedule.decisions]
    ages = np.array([d.ages.get(CAMERA, np.nan) for d in record.decisions], float)
    encoded = sum(encoding.modality == CAMERA for encoding in schedule.encodings)
    return sums | {
        'people': float(sums['people'])  # type: ignore[arg-type]
        + sum(float(np.count_nonzero(counted_people(frame))) for frame in frames),
        'latency': latencies,
        'age': ages[np.isfinite(ages)].tolist(),
        'late': float(sum(latency > limit for latency in latencies)),
        'decisions': float(len(latencies)),
        'dropped': float(len(schedule.dropped)),
        'windows': float(len(latencies) + len(schedule.dropped)),
        'encoded': encoded - float(sums['followed']),  # type: ignore[arg-type]
        'cpu_seconds': run.cpu_seconds,
    }
