"""How the configuration went over a flight, and why, in words."""

from __future__ import annotations

from collections import Counter
from typing import Any

from mmedge_ros.data_types import NS_PER_S, Configuration
from mmedge_ros.lab.evaluation.trajectories import start_ns
from mmedge_ros.records.run_record import RunRecord

_MOST_LISTED = 1000


def configurations_in_words(record: RunRecord) -> list[dict[str, Any]]:
    """Return every configuration: when, what, why, and how many decisions have units of it."""
    decisions = Counter(i for decision in record.decisions for i in decision.configuration_ids)
    zero_ns = start_ns(record)
    return [
        {
            'id': configuration.id,
            'from_s': (configuration.effective_from_ns - zero_ns) / NS_PER_S,
            'modalities': {
                part.modality: {'rate': part.rate, 'level': part.level}
                for part in configuration.modalities
            },
            'latency_limit_ms': 1e3 * configuration.latency_limit,
            'predicted_latency_ms': 1e3 * configuration.predicted_latency,
            'predicted_accuracy': configuration.predicted_accuracy,
            'reason': configuration.reason,
            'decisions': decisions[configuration.id],
        }
        for configuration in in_order(record)[:_MOST_LISTED]
    ]


def in_order(record: RunRecord) -> list[Configuration]:
    """Return the configurations in the order they took effect."""
    return sorted(record.configurations, key=lambda c: (c.effective_from_ns, c.id))
