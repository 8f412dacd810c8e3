"""Decisions of a graph that waits: each from a whole window, however long that takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mmedge_ros.core.data_types import UnitFeatures
from mmedge_ros.pipeline.decision_worker import DecisionWorker
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.window_assembler import ClosedWindow, WindowAssembler


class WholeWindowAssembler(WindowAssembler):
    """Closes a window when all its units are encoded; of several at once only the newest.

    An encoder that is behind encodes the newest window that has ended. Those before it are then
    complete as well, and nobody asked for them any more: they are dropped.
    """

    def poll(self, now_ns: int) -> list[ClosedWindow]:
        """Close the newest window that is complete, and drop those before it."""
        first_ns = self.next_end_ns
        if first_ns is not None:
            waited_ns = min(self._pending.values(), default=now_ns)
            looked_ns = min(now_ns - self.look_delay_ns, waited_ns - 1)
            newest_ns = looked_ns // self.stride_ns * self.stride_ns
            if newest_ns > first_ns:
                self.drop_until(newest_ns)
        return super().poll(now_ns)


class WholeWindowWorker(DecisionWorker):
    """Decides whole windows: no unit gives way to a newer one, and nothing is decided early."""

    def __init__(self, pipeline: PerceptionPipeline, *others: Any) -> None:
        windows = pipeline.parameters.windows
        pipeline.assembler = WholeWindowAssembler(windows, pipeline.parameters.modalities)
        pipeline.early_decision = None
        pipeline.parameters = replace(pipeline.parameters, updates=False)
        super().__init__(pipeline, *others)

    def submit_unit(self, features: UnitFeatures) -> None:
        """Hand over an encoded unit."""
        self.submit(lambda pipeline, now_ns: pipeline.add_features(features, now_ns))
