"""What the diagnostics of the optimiser's node show."""

from __future__ import annotations

import time

from mmedge_ros.configuration.configuration_loop import ConfigurationLoop
from mmedge_ros.ros.optimizer_setup import Cost, OptimizerSetup


def optimizer_figures(
    setup: OptimizerSetup, decision_cost: Cost, unit_cost: Cost
) -> dict[str, object]:
    """Return the figures of a node: the configuration, its bounds, and what was learned.

    :param decision_cost: of each decision about a configuration
    :param unit_cost: of learning from each unit
    """
    loop = setup.loop
    current, power = loop.current, loop.bounds.power.state
    figures: dict[str, object] = {
        'configuration': current.id if current is not None else '',
        'reason': current.reason if current is not None else '',
        'caps': '; '.join(loop.reasons),
        'changes': loop.counts.changes,
        'states': loop.counts.states,
        'power state': power.mode.name,
        'power alpha': f'{power.alpha:.2f}',
        'power reason': power.reason,
        'bursts': loop.bounds.standby.bursts,
        'decision (us, median)': decision_cost.microseconds(),
    }
    if isinstance(loop, ConfigurationLoop):
        counts, budget = loop.counts, loop.budget
        figures |= {
            'configurations to choose from': setup.size,
            'accuracies': setup.source,
            'units': counts.units,
            'durations not used': loop.rejected,
            'decisions': counts.decisions,
            'late decisions': counts.late,
            'consumers': ', '.join(budget.consumers(time.monotonic())),
            'latency demands': budget.taken,
            'latency demands not used': budget.refused,
            'last one not used': budget.problem,
            'calibration (us per unit, median)': unit_cost.microseconds(),
        }
    return figures
