"""What is counted of a pipeline, and what is wrong with its pictures and its gate."""

from __future__ import annotations

from collections import Counter

from mmedge_ros.core.data_types import Decision, ResultKind
from mmedge_ros.encoding.bricks import BrickStatus
from mmedge_ros.pipeline.decision_worker import DecisionWorker
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import DECISION, FEATURE
from mmedge_ros.pipeline.track_updates import UPDATES
from mmedge_ros.windows.fusion_runtime import FusionNetworkRuntime
from mmedge_ros.windows.skip_control import SkipStatus

# What there was no time for, by what the pipeline calls it.
_SHED = {
    'units': 'encoded units left out, for lack of time',
    'pictures': 'pictures not fused, for lack of time',
    'windows': 'windows not decided, for lack of time',
}


class PipelineStatus:
    """Figures of the pipeline, and warnings of pictures and of a gate that was switched off."""

    def __init__(self, pipeline: PerceptionPipeline) -> None:
        self._pipeline = pipeline
        self._decisions = self._updates = 0
        self._degraded: tuple[str, ...] = ()
        self._gate = _gate_status(pipeline)

    def published(self, result: Decision) -> None:
        """Note a result; called in the thread that works with the pipeline and its gate."""
        if result.kind is ResultKind.UPDATE:
            self._updates += 1
            return
        self._decisions += 1
        self._degraded = result.degraded
        self._gate = _gate_status(self._pipeline)

    def problems(self) -> list[str]:
        """Say in words what is wrong with mounts, pictures and gate."""
        problems = [*self._pipeline.boresight.words, *self._pipeline.unlike]
        if self._gate is not None and self._pipeline.unlike:
            problems.append('meanwhile no sensor rests')
        if self._gate is not None and self._gate.is_off:
            problems.append(
                'the gate is switched off, no sensor rests: the last audited early decisions lose '
                f'{100.0 * self._gate.audit_loss:.0f} points of IoU against the full ones; train '
                'or calibrate it for this scene'
            )
        return problems

    def bricks(self) -> list[BrickStatus]:
        """Return what the networks of feature fusion do; none where rules fuse."""
        fusion = self._pipeline.feature_fusion
        networks = None if fusion is None else fusion.networks
        return [networks.brick()] if isinstance(networks, FusionNetworkRuntime) else []

    def figures(self, worker: DecisionWorker) -> dict[str, object]:
        """Return what is counted by the pipeline and the worker that drives it."""
        counts, fusion = self._pipeline.assembler.counts, self._pipeline.feature_fusion
        drift = self._pipeline.drift
        return {
            'strategy': DECISION if fusion is None else FEATURE,
            'decisions': self._decisions,
            'updates': self._updates,
            'updates_left_out': worker.shed[UPDATES],
            'late': counts.late.total(),
            'never_encoded': counts.unheard.total(),
            'dropped_windows': counts.dropped_windows,
            'clock_restarts': counts.restarts,
            'ahead_of_clock': counts.ahead,
            'stale': counts.stale,
            'overflows': worker.overflows + counts.overflows,
            'failures': worker.failures.total(),
            'not_fused': fusion.refused.total() if fusion else 0,
            'degraded': '; '.join(self._degraded),
            **({} if drift is None else {'picture_alarms': drift.alarms}),
            **({} if self._gate is None else _gate_figures(self._gate)),
        }

    @staticmethod
    def shed(worker: DecisionWorker) -> Counter[str]:
        """Count in words what there was no time for."""
        return Counter({_SHED[k]: n for k, n in worker.shed.copy().items() if n and k in _SHED})


def _gate_status(pipeline: PerceptionPipeline) -> SkipStatus | None:
    early = pipeline.early_decision
    return None if early is None else early.control.status


def _gate_figures(gate: SkipStatus) -> dict[str, object]:
    return {
        'early': gate.early,
        'leases': gate.leases,
        'leases_taken_back': gate.resumed,
        'slow_modality': gate.slow,
        'gate_asked': gate.evaluations,
        'gate_threshold': f'{gate.threshold:.4g}',
        'gate_audits': gate.audits,
        'gate_audit_loss': f'{gate.audit_loss:.3f}',
        'gate_off': gate.is_off,
    }
