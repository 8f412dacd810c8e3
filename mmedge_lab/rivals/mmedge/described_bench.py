"""What a language model at work costs decisions, and what a demand for its time changes.

The limit of a decision is what sentences leave of the limit of a user; each kind of question is
flown by itself, with its demand heard by the optimiser and without.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from mmedge_lab.judging import EvaluationError
from mmedge_lab.judging.accuracy_sums import FIGURES, stream_sums
from mmedge_lab.judging.bench import Bench, BenchRequest, Figure, Row, Subject, Sums
from mmedge_lab.rivals.mmedge.cpu_step_bench import SETTLING, without_saving
from mmedge_ros.adaptation.latency_budget import LatencyBudget, LatencyDemand
from mmedge_ros.core.data_types import NS_PER_S, FloatArray
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.questions.describing import KINDS, NEWEST, TAKES
from mmedge_ros.replay.live_record import LiveRecord
from mmedge_ros.report.accuracy import accuracy_of
from mmedge_ros.ros.graph.options import GraphOptions
from mmedge_ros.ros.sessions.live_session import replay_live

# So long after the start nothing counts (s): a model is loaded, and its time gets known.
_STARTING = 7.0
_FIGURES = {
    'in_time': Figure('in time, %', 'in_time', 'windows', 1, scale=100.0),
    'limit': Figure('limit, ms', 'limit', 'windows', 0),
    'p50': Figure('p50, ms', 'latency', digits=1, quantile=0.5),
    'p95': Figure('p95, ms', 'latency', digits=1, quantile=0.95),
    'sentences': Figure('sentences in time, %', 'sentences_in_time', 'sentences', 1, scale=100.0),
    'takes': Figure('take, ms', 'takes', digits=0),
    'streaming_mean_iou': FIGURES['streaming_mean_iou'],
}


class DescribedFlight(NamedTuple):
    """A live flight, and what the node that describes its decisions said of itself.

    ``statuses`` are its figures by instant of the recording (ns); none without a model.
    """

    record: RunRecord
    statuses: Sequence[tuple[int, Mapping[str, str]]] = ()


@dataclass(frozen=True)
class _Plan:
    """What is flown; ``usual`` and ``total`` are limits (s) of decisions and with a sentence."""

    model: Path
    detector: str
    parameters: Path
    profile: str
    usual: float
    total: float


def bench(
    request: BenchRequest,
    *,
    profile: str = '',
    kinds: str = 'count',
    limit_ms: float = 100.0,
    total_limit_s: float = 1.0,
) -> Bench:
    """Fly live beside a language model that describes: inputs are MODEL.gguf and a flight.

    :param profile: of this machine, as `mmedge profile` measures it
    :param kinds: of questions, by commas, each flown by itself
    :param limit_ms: latency that decisions have to keep without a model
    :param total_limit_s: of decision and sentence
    """
    model = request.input(0, 'a language model, MODEL.gguf,').resolve()
    flight = request.input(1, 'a flight, after the model,')
    if not profile:
        raise EvaluationError('give the profile of this machine: --set profile=FILE')
    wanted = [kind.strip() for kind in kinds.split(',')]
    for kind in wanted:
        if kind not in KINDS:
            raise EvaluationError(f'no kind {kind!r} of questions; there are {", ".join(KINDS)}')
    request.out.mkdir(parents=True, exist_ok=True)
    parameters = request.out / 'parameters.yaml'
    content = {
        'fusion': {'ros__parameters': {'pipeline.windows.deadline': limit_ms / 1e3}},
        'configuration_optimizer': {'ros__parameters': without_saving()},
    }
    parameters.write_text(yaml.safe_dump(content))
    plan = _Plan(model, request.detector, parameters, profile, limit_ms / 1e3, total_limit_s)
    rows = [Row('no model', partial(_flown, plan, '', 0.0))]
    for kind in wanted:
        rows += [
            Row(f'{kind}, demand heard', partial(_flown, plan, kind, total_limit_s)),
            Row(f'{kind}, no demand', partial(_flown, plan, kind, 0.0)),
        ]
    return Bench(
        'Decisions beside a language model that describes them, live',
        tuple(rows),
        _FIGURES,
        (Subject(flight.name, flight),),
        about={'limit': f'{limit_ms:g} ms', 'with a sentence': f'{total_limit_s:g} s'},
    )


def _flown(plan: _Plan, kind: str, total: float, subject: Subject) -> Sums:
    heard: list[LiveRecord] = []
    options = GraphOptions(
        bag=str(subject.flight),
        detector=plan.detector,
        params=str(plan.parameters),
        optimise=True,
        profile=plan.profile,
        question_parameters=describing(plan.model, kind, total) if kind else None,
    )

    def watch(_: float, live: LiveRecord) -> None:
        heard[:] = [live]

    record = replay_live(options, watch)
    offset_ns = heard[0].status.offset_ns if heard and heard[0].status else 0
    said = heard[0].described if heard else []
    flight = DescribedFlight(record, [(at - offset_ns, figures) for at, figures in said])
    return described_sums(flight, plan.total, plan.usual)


def describing(model: Path, kind: str, total: float) -> dict[str, Any]:
    """Return parameters of the node that describes decisions by sentences of a kind."""
    return {'model': str(model), 'describe.kinds': [kind], 'describe.total_limit': total}


def described_sums(flight: DescribedFlight, total: float, usual: float) -> Sums:
    """Return the sums of a flight after its start; a window without a decision is late.

    :param total: limit of the user, for decision and sentence (s)
    :param usual: limit of decisions that nothing is made of (s)
    """
    record = flight.record
    decided = {d.window_end_ns: d.latency for d in record.decisions[record.warmup :]}
    stride_ns = round(record.stride * NS_PER_S)
    first_ns = min(decided, default=0) + round(_STARTING * NS_PER_S)
    ends = range(first_ns, max(decided, default=0) + 1, stride_ns)
    latency = np.array([decided.get(end, math.inf) for end in ends])
    limits = limits_at(flight, ends, total, usual)
    # Of sentences that are made faster than the node says its figures, once a second, some lack.
    last = {f['sentences']: 1e-3 * float(f[NEWEST]) for _, f in flight.statuses}
    sentences = [seconds for seconds in last.values() if math.isfinite(seconds)]
    takes = upper_of(flight.statuses[-1][1]) if flight.statuses else math.nan
    accuracy = accuracy_of(record, record.truth, at_once=False) if record.truth else None
    return {
        'windows': len(latency),
        'in_time': int((latency <= limits).sum()),
        'limit': 1e3 * float(limits.sum()),
        'latency': (1e3 * latency[np.isfinite(latency)]).tolist(),
        'sentences': len(sentences),
        'sentences_in_time': sum(seconds <= total for seconds in sentences),
        **({'takes': 1e3 * takes} if math.isfinite(takes) else {}),
        **(stream_sums(accuracy.stream) if accuracy else {}),
    }


def upper_of(figures: Mapping[str, str]) -> float:
    """Return what the slowest kind of sentence takes (s, upper quantile); NaN where unknown."""
    times = [float(text) for key, text in figures.items() if key.endswith(TAKES)]
    return 1e-3 * max((t for t in times if math.isfinite(t)), default=math.nan)


def limits_at(
    flight: DescribedFlight, ends_ns: Sequence[int], total: float, usual: float
) -> FloatArray:
    """Return the limit (s) of the decision at each window's end.

    A shorter one holds from 2 s after it began, as a step of the processor does.
    """
    stamps = [stamp_ns for stamp_ns, _ in flight.statuses]
    left = [_left(upper_of(figures), total, usual) for _, figures in flight.statuses]
    limits = []
    for end_ns in ends_ns:
        last = int(np.searchsorted(stamps, end_ns, 'right'))
        first = int(np.searchsorted(stamps, end_ns - round(SETTLING * NS_PER_S), 'right'))
        limits.append(max(left[max(first - 1, 0) : last], default=usual) if first else usual)
    return np.array(limits, np.float64)


def _left(upper: float, total: float, usual: float) -> float:
    budget = LatencyBudget()
    if math.isfinite(upper):
        budget.take(LatencyDemand('sentences', upper, total, 1.0), 0.0)
    return budget.limit(usual, 0.0)[0]
