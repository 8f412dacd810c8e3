"""Service times of a run, for a device profile."""

from __future__ import annotations

from collections import defaultdict

from mmedge_ros.data_types import NS_PER_S
from mmedge_ros.records.run_record import RunRecord


def stage_durations(record: RunRecord) -> dict[str, list[float]]:
    """Return durations in seconds of the stages an offline replay asks a profile for.

    ``<modality>.encode`` from the units' trails; ``features.transport`` and ``fusion`` from
    the decisions'; a receipt is as small as any message and takes the unit's own transport.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for features in record.features:
        for stage in features.trail:
            seconds = (stage.end_ns - stage.begin_ns) / NS_PER_S
            if stage.stage == 'encode':
                found[f'{features.modality}.encode'].append(seconds)
            elif stage.stage == 'transport':
                found['receipt.transport'].append(seconds)
    for decision in record.decisions[record.warmup :]:
        for stage in decision.trail:
            seconds = (stage.end_ns - stage.begin_ns) / NS_PER_S
            if stage.stage == 'transport_features':
                found['features.transport'].append(seconds)
            elif stage.stage == 'fusion':
                found['fusion'].append(seconds)
    return dict(found)
