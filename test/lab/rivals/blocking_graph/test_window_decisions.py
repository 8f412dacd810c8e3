"""Windows of a graph that decides whole ones."""

from __future__ import annotations

from hand_made_units import MS, ManualClock, at, features, receipt, unit

from mmedge_lab.rivals.blocking_graph.window_decisions import (
    WholeWindowAssembler,
    WholeWindowWorker,
)
from mmedge_ros.pipeline.perception_pipeline import PerceptionPipeline
from mmedge_ros.pipeline.pipeline_parameters import PipelineParameters
from mmedge_ros.pipeline.window_assembler import ClosedWindow, WindowParameters


def windows_of(assembler: WholeWindowAssembler, now: float) -> list[float]:
    def end(window: ClosedWindow) -> float:
        return (window.end_ns - at(0)) / MS

    return [end(window) for window in assembler.poll(at(now))]


def test_a_window_is_waited_for_until_all_of_it_is_encoded() -> None:
    assembler = WholeWindowAssembler(WindowParameters(deadline=5.0))
    units = [unit(50.0, sequence=0), unit(90.0, sequence=1)]
    for of in units:
        assembler.add_receipt(receipt(of), at(100))
    assembler.add_features(features(units[1]), at(400))
    assert windows_of(assembler, 450) == []
    assembler.add_features(features(units[0]), at(460))
    assert windows_of(assembler, 460)[0] == 400.0


def test_of_windows_that_are_complete_at_once_only_the_newest_is_decided() -> None:
    assembler = WholeWindowAssembler(WindowParameters(deadline=5.0))
    units = [unit(50.0 * n, sequence=n) for n in range(1, 7)]
    for of in units:
        assembler.add_receipt(receipt(of), of.available_ns)
    # The last two belong to the third window, which nobody has encoded.
    for of in reversed(units[:4]):
        assert windows_of(assembler, 340) == []
        assembler.add_features(features(of), at(340))
    assert windows_of(assembler, 341) == [200.0]
    assert assembler.counts.dropped_windows == 1
    assert assembler.next_end_ns == at(300)


def test_many_units_at_once_are_all_entered() -> None:
    pipeline = PerceptionPipeline(PipelineParameters(windows=WindowParameters(deadline=5.0)))
    worker = WholeWindowWorker(pipeline, ManualClock(at(100)), lambda _: None)
    for number in range(9):
        worker.submit_unit(features(unit(10.0 * number, sequence=number)))
    worker._work_on_tasks()
    assert len(pipeline.assembler._arrivals) == 9
    assert not worker.shed.total()
