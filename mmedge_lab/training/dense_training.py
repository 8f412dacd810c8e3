"""Trains networks of two layers by any loss: some thousand weights, in seconds.

The same samples, settings and seed give the same network; it is trained on one processor core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training import TrainingError
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.core.parameter import parameter
from mmedge_ros.windows.gate import DenseNetwork

FEWEST_SAMPLES = 50
FEWEST_FLIGHTS = 3
# How often the held-out loss is looked at, in epochs.
_LOOK = 5

Rows = NDArray[np.intp]
# Of outputs (B, O), a tensor, for samples at rows (B,): the mean loss, a scalar tensor.
Loss = Callable[[Any, Rows], Any]
# The outputs (O,) that are best for samples at rows (B,), whatever the inputs.
Constant = Callable[[Rows], FloatArray]


@dataclass(frozen=True)
class DenseSettings:
    """How a network is trained; dropout is applied in training only."""

    hidden: int = parameter(32, 'units of the hidden layer', '', 1, 1024)
    dropout: float = parameter(0.1, 'share of hidden units left out in training', '', 0.0, 0.9)
    learning_rate: float = parameter(0.003, 'step of the optimiser', '', 1e-6, 1.0)
    weight_decay: float = parameter(0.01, 'pull of the weights to zero', '', 0.0, 1.0)
    batch: int = parameter(128, 'samples in a step', '', 1, 100_000)
    epochs: int = parameter(40, 'most passes over the samples', '', 1, 100_000)
    held_out: float = parameter(0.2, 'share of flights that decide when to stop', '', 0.05, 0.5)
    seed: int = parameter(0, 'of weights, order and dropout', '', 0, 2**31 - 1)


class DenseFit(NamedTuple):
    """A trained network; losses are those of held-out flights, and of the best constant there."""

    network: DenseNetwork
    epochs: int
    held_out_loss: float
    constant_loss: float

    def facts(self) -> dict[str, float]:
        """Return what a manifest says of the training."""
        losses = {name: round(getattr(self, name), 6) for name in self._fields[2:]}
        return {'epochs': self.epochs, **losses}


def fit_network(
    inputs: FloatArray,
    flights: NDArray[np.int64],
    loss: Loss,
    constant: Constant,
    settings: DenseSettings,
) -> DenseFit:
    """Train a network, and stop where it was best for flights held out as a whole.

    Where a constant is best for them, the network is that constant.

    :param inputs: (N, F)
    :param flights: (N,) numbers of the flights they come from
    :param constant: what training begins with
    :raises TrainingError: for too few samples or flights
    """
    known = np.unique(flights)
    if len(inputs) < FEWEST_SAMPLES or len(known) < FEWEST_FLIGHTS:
        raise TrainingError(
            f'{len(inputs)} samples of {len(known)} flights are too few to train a network; use '
            f'a set of at least {FEWEST_FLIGHTS} flights with {FEWEST_SAMPLES} samples'
        )
    count = min(max(round(settings.held_out * len(known)), 1), len(known) - 1)
    held = np.random.default_rng(settings.seed).permutation(known)[:count]
    is_held = np.isin(flights, held)
    judged, rows = np.flatnonzero(is_held), np.flatnonzero(~is_held)
    networks = list(train_dense(inputs, rows, loss, constant(rows), settings, _LOOK))
    losses = [loss_of(network, inputs, judged, loss) for network in networks]
    best = int(np.argmin(losses))
    return DenseFit(networks[best], best * _LOOK, losses[best], losses[0])


def train_dense(
    inputs: FloatArray,
    rows: Rows,
    loss: Loss,
    constant: FloatArray,
    settings: DenseSettings,
    every: int,
) -> Iterator[DenseNetwork]:
    """Train on some rows; yields the network at the beginning and after every few epochs.

    AdamW (Loshchilov and Hutter, arXiv 1711.05101); biases are not pulled to zero.

    :param inputs: (N, F), standardised by the mean and deviation of the chosen rows
    :param constant: outputs (O,) of the network at the beginning, whatever the inputs
    """
    import torch

    torch.set_num_threads(1)
    p = settings
    random = torch.Generator().manual_seed(p.seed)
    mean, deviation = inputs[rows].mean(axis=0), inputs[rows].std(axis=0)
    # A field that never varied gets no weight, also when it varies later.
    scale = np.where(deviation > 1e-9, 1.0 / np.maximum(deviation, 1e-9), 0.0)
    fields, real = inputs.shape[1], torch.float64
    weights = [
        torch.randn((fields, p.hidden), generator=random, dtype=real) * np.sqrt(2.0 / fields),
        torch.zeros(p.hidden, dtype=real),
        torch.zeros((p.hidden, len(constant)), dtype=real),
        torch.tensor(constant, dtype=real),
    ]

    def network() -> DenseNetwork:
        return DenseNetwork(mean, scale, *(w.detach().numpy().copy() for w in weights))

    yield network()
    standardised = torch.from_numpy(network().standardised(inputs))
    for weight in weights:
        weight.requires_grad_()
    groups = [
        {'params': weights[::2], 'weight_decay': p.weight_decay},
        {'params': weights[1::2], 'weight_decay': 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=p.learning_rate)
    first, bias1, second, bias2 = weights
    for epoch in range(1, p.epochs + 1):
        order = rows[torch.randperm(len(rows), generator=random).numpy()]
        for begin in range(0, len(order), p.batch):
            chosen = order[begin : begin + p.batch]
            hidden = torch.relu(standardised[chosen] @ first + bias1)
            kept = torch.rand(hidden.shape, generator=random) >= p.dropout
            outputs = (hidden * kept / (1.0 - p.dropout)) @ second + bias2
            optimizer.zero_grad()
            loss(outputs, chosen).backward()
            optimizer.step()
        if epoch % every == 0:
            yield network()


def loss_of(network: DenseNetwork, inputs: FloatArray, rows: Rows, loss: Loss) -> float:
    """Return the mean loss of a network for inputs (N, F) at some rows."""
    import torch

    return float(loss(torch.from_numpy(network.outputs(inputs[rows])), rows))


def yes_or_no(labels: NDArray[np.bool_] | FloatArray) -> Loss:
    """Return the cross-entropy (nats) of one logit with labels (N,), or shares of yes."""
    from torch import from_numpy
    from torch.nn.functional import binary_cross_entropy_with_logits

    wanted = from_numpy(labels.astype(np.float64))
    return lambda outputs, rows: binary_cross_entropy_with_logits(outputs[:, 0], wanted[rows])


def present_and_moved(present: NDArray[np.bool_], moved: FloatArray) -> Loss:
    """Return the loss of a logit, whether a person is present, and of how far they moved then.

    :param present: (N,)
    :param moved: (N, D) in units of their deviation; errors beyond one count linearly
    """
    from torch import from_numpy
    from torch.nn.functional import huber_loss

    presence, targets = yes_or_no(present), from_numpy(moved)

    def loss(outputs: Any, rows: Rows) -> Any:
        there = np.flatnonzero(present[rows])
        error = huber_loss(outputs[there, 1:], targets[rows[there]], reduction='sum')
        return presence(outputs[:, :1], rows) + error / max(len(there) * moved.shape[1], 1)

    return loss


def log_odds(labels: NDArray[np.bool_] | FloatArray, least: float = 0.01) -> float:
    """Return the logit of the share of labels that are true, which is kept off 0 and 1."""
    share = float(np.clip(labels.mean(), least, 1.0 - least))
    return float(np.log(share / (1.0 - share)))
