"""Rivals made by hand: networks whose answers are known, and what they choose from."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mmedge_lab.policies.imputation import PERSON_FIELDS, TrainedImputer
from mmedge_lab.policies.policy_features import POLICY_FIELDS
from mmedge_lab.policies.steering import Plugins
from mmedge_lab.policies.trained_choosers import TrainedSelector
from mmedge_lab.policies.trained_rivals import Choices, choices_of, trained_gate
from mmedge_ros.core.data_types import CAMERA, RADAR, Configuration, ModalityConfiguration
from mmedge_ros.windows.gate import DenseNetwork


def linear_network(fields: int, weights: np.ndarray, begin: np.ndarray) -> DenseNetwork:
    """Outputs are ``begin + inputs @ weights``, for inputs from -4 to 4."""
    outputs = len(begin)
    both = np.concatenate([np.eye(fields), -np.eye(fields)], axis=1)
    return DenseNetwork(
        np.zeros(fields),
        np.ones(fields),
        both,
        np.zeros(2 * fields),
        np.concatenate([weights, -weights]).reshape(2 * fields, outputs),
        np.asarray(begin, np.float64),
    )


def constant_network(fields: int, *outputs: float) -> DenseNetwork:
    """Whatever is asked, the answer is the same."""
    return linear_network(fields, np.zeros((fields, len(outputs))), np.array(outputs))


def going_on(logit: float = 5.0) -> TrainedImputer:
    """Moves people on as they went."""
    weights = np.zeros((len(PERSON_FIELDS), 5))
    first = PERSON_FIELDS.index('onward_right')
    weights[first : first + 4, 1:] = np.eye(4)
    begin = np.array([logit, 0.0, 0.0, 0.0, 0.0])
    return TrainedImputer(linear_network(len(PERSON_FIELDS), weights, begin), np.ones(4))


def choices(*levels: str) -> Choices:
    """Of a bundle with these levels, from the cheapest on."""

    def of(level: str, rate: float = 30.0) -> Configuration:
        return Configuration(
            1,
            0,
            (ModalityConfiguration(CAMERA, rate, level), ModalityConfiguration(RADAR, 20.0, '')),
        )

    return Choices(levels, tuple(of(level) for level in levels), of(levels[-1], 10.0))


def plugins_for(bundle: Path, rests: float = 3.0) -> Plugins:
    """All three, for a bundle; ``rests`` is the logit of the gate."""
    of = choices_of(bundle)
    return Plugins(
        trained_gate(constant_network(len(POLICY_FIELDS), rests), 0.5, of),
        TrainedSelector(
            # The more people, the worse the cheapest level.
            linear_network(
                len(POLICY_FIELDS),
                np.outer(
                    [name == 'strong' for name in POLICY_FIELDS],
                    [0.05] + [0.0] * (len(of.levels) - 1),
                ),
                np.zeros(len(of.levels)),
            ),
            0.12,
            of.levels,
            of.by_level,
        ),
        going_on(),
    )
