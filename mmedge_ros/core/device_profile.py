"""Service times of a device as quantiles: measured in a run, sampled reproducibly in a replay."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mmedge_ros.core import RecordError
from mmedge_ros.core.data_types import NS_PER_S
from mmedge_ros.core.run_record import RunRecord
from mmedge_ros.core.untrusted_files import PlainYamlError, is_number, load_plain_yaml, shown

_MAX_BYTES = 200_000
# Measured on a flight with six people, JPEG of 640 x 480 px decoded: 1.6 ms to follow, 10.4 ms to
# encode at `medium`.
FOLLOW_SHARE = 0.15
PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True)
class DeviceProfile:
    """Quantiles of the time each stage takes.

    ``stages`` maps a name such as ``camera.encode`` to durations in seconds at
    `PROBABILITIES`; ``description`` says what was measured and where. ``details`` is what
    else the file says: the machine, times under CPU limits, the error of the latency model.
    """

    description: str
    stages: Mapping[str, tuple[float, ...]]
    details: Mapping[str, Any] = field(default_factory=dict)

    def encode_stage(self, modality: str, level: str) -> str:
        """Return the name of a level's encode stage; that of the modality where it has none."""
        own = f'{modality}.{level}.encode'
        return own if own in self.stages else f'{modality}.encode'

    def sample_work(self, modality: str, level: str, sequence: int, followed: bool) -> float:
        """Draw the time in seconds of encoding a unit, or of following what was seen before.

        A profile without the stage ``<modality>.follow`` is taken to need 0.15 of the time of
        encoding at the default level for it.

        :raises RecordError: for a modality the profile does not know
        """
        encode = self.encode_stage(modality, level)
        if not followed:
            return self.sample(encode, modality, sequence)
        if f'{modality}.follow' in self.stages:
            return self.sample(f'{modality}.follow', modality, sequence)
        default = f'{modality}.encode'
        stage = default if default in self.stages else encode
        return FOLLOW_SHARE * self.sample(stage, modality, sequence)

    def sample(self, stage: str, key: str, sequence: int) -> float:
        """Draw a duration in seconds, seeded by stage, key and sequence alone.

        Between the known quantiles the distribution is linear; outside them it ends.

        :raises RecordError: for a stage the profile does not know
        """
        if stage not in self.stages:
            known = ', '.join(sorted(self.stages)) or 'none'
            raise RecordError(f'the device profile has no stage {stage!r}; it has {known}')
        digest = hashlib.blake2b(f'{stage}/{key}/{sequence}'.encode(), digest_size=8).digest()
        share = int.from_bytes(digest, 'little') / 2.0**64
        return float(np.interp(share, PROBABILITIES, self.stages[stage]))


def measured_profile(description: str, durations: Mapping[str, Iterable[float]]) -> DeviceProfile:
    """Summarise measured durations (s) of each stage."""
    stages = {}
    for stage, values in durations.items():
        quantiles = np.quantile(np.fromiter(values, float), PROBABILITIES)
        stages[stage] = tuple(round(float(q), 6) for q in quantiles)
    return DeviceProfile(description, stages)


def write_profile(profile: DeviceProfile, path: Path) -> None:
    """Write a profile as YAML; milliseconds in the file, as people read them."""
    content = {
        'description': profile.description,
        'probabilities': list(PROBABILITIES),
        'stages_ms': {
            name: [round(1e3 * q, 3) for q in values]
            for name, values in sorted(profile.stages.items())
        },
        **profile.details,
    }
    path.write_text(yaml.safe_dump(content, sort_keys=False, default_flow_style=None))


def read_profile(path: Path) -> DeviceProfile:
    """Read a profile. Raises RecordError when the file is missing or is not a profile."""
    try:
        content = load_plain_yaml(path, _MAX_BYTES)
    except PlainYamlError as err:
        raise RecordError(f'cannot read the device profile {err}') from err
    if not isinstance(content.get('stages_ms'), dict):
        raise RecordError(f'{path} is not a device profile: the key "stages_ms" is missing')
    if content.get('probabilities') != list(PROBABILITIES):
        raise RecordError(f'{path}: "probabilities" must be {list(PROBABILITIES)}')
    stages = {
        str(name): _quantiles(path, str(name), values)
        for name, values in content['stages_ms'].items()
    }
    own = ('description', 'probabilities', 'stages_ms')
    details = {str(name): value for name, value in content.items() if name not in own}
    return DeviceProfile(str(content.get('description', '')), stages, details)


def _quantiles(path: Path, name: str, values: Any) -> tuple[float, ...]:
    numbers = values if isinstance(values, list) else []
    usable = all(is_number(v, 0.0, 1e6) for v in numbers)
    if len(numbers) != len(PROBABILITIES) or not usable or sorted(numbers) != numbers:
        raise RecordError(
            f'{path}: stage {name!r} needs {len(PROBABILITIES)} ascending times in '
            f'milliseconds, not {shown(values)}'
        )
    return tuple(v / 1e3 for v in numbers)


def stage_durations(record: RunRecord) -> dict[str, list[float]]:
    """Return durations in seconds of the stages that an offline replay samples from a profile.

    ``<modality>.encode`` and ``<modality>.follow`` from the units' trails;
    ``features.transport`` and ``fusion`` from the decisions'; a receipt is as small as any message
    and takes the unit's own transport.
    """
    durations: dict[str, list[float]] = defaultdict(list)
    for features in record.features:
        for stage in features.trail:
            seconds = (stage.end_ns - stage.begin_ns) / NS_PER_S
            if stage.stage in ('encode', 'follow'):
                durations[f'{features.modality}.{stage.stage}'].append(seconds)
            elif stage.stage == 'transport':
                durations['receipt.transport'].append(seconds)
    for decision in record.decisions[record.warmup :]:
        for stage in decision.trail:
            seconds = (stage.end_ns - stage.begin_ns) / NS_PER_S
            if stage.stage == 'transport_features':
                durations['features.transport'].append(seconds)
            elif stage.stage == 'fusion':
                durations['fusion'].append(seconds)
    return dict(durations)
