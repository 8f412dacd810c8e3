"""Trains networks of two layers by any loss: some thousand weights, in seconds.

The same samples, settings and seed give the same network; it is trained on one processor core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmedge_lab.training import TrainingError
from mmedge_lab.training.epoch_training import EpochTraining, Task, TrainingParameters
from mmedge_ros.core.data_types import FloatArray
from mmedge_ros.windows.gate import DenseNetwork

FEWEST_SAMPLES = 50
FEWEST_FLIGHTS = 3
_WARM_UP, _LARGEST_GRADIENT = 20, 10.0

Rows = NDArray[np.intp]
# Of outputs (B, O), a tensor, for samples at rows (B,): the mean loss, a scalar tensor.
Loss = Callable[[Any, Rows], Any]
# The outputs (O,) that are best for samples at rows (B,), whatever the inputs.
Constant = Callable[[Rows], FloatArray]


class DenseSettings(NamedTuple):
    """How a network is trained.

    Of ``hidden`` units the share ``dropout`` is left out in training only; a step takes ``batch``
    samples, and the share ``held_out`` of the flights decides when to stop.
    """

    hidden: int = 32
    dropout: float = 0.1
    learning_rate: float = 0.003
    weight_decay: float = 0.01
    batch: int = 128
    epochs: int = 40
    held_out: float = 0.2
    seed: int = 0


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
    import torch
    from torch import nn

    known = np.unique(flights)
    if len(inputs) < FEWEST_SAMPLES or len(known) < FEWEST_FLIGHTS:
        raise TrainingError(
            f'{len(inputs)} samples of {len(known)} flights are too few to train a network; use '
            f'a set of at least {FEWEST_FLIGHTS} flights with {FEWEST_SAMPLES} samples'
        )
    p = settings
    count = min(max(round(p.held_out * len(known)), 1), len(known) - 1)
    held = np.random.default_rng(p.seed).permutation(known)[:count]
    is_held = np.isin(flights, held)
    judged, rows = np.flatnonzero(is_held), np.flatnonzero(~is_held)
    torch.set_num_threads(1)
    torch.manual_seed(p.seed)
    fields, outputs = inputs.shape[1], constant(rows)
    first, last = nn.Linear(fields, p.hidden), nn.Linear(p.hidden, len(outputs))
    network = nn.Sequential(first, nn.ReLU(), nn.Dropout(p.dropout), last).double()
    with torch.no_grad():
        first.weight.normal_(0.0, float(np.sqrt(2.0 / fields)))
        last.bias.copy_(torch.from_numpy(outputs))
        for zero in (first.bias, last.weight):
            zero.zero_()
    mean, deviation = inputs[rows].mean(axis=0), inputs[rows].std(axis=0)
    # A field that never varied gets no weight, also when it varies later.
    scale = np.where(deviation > 1e-9, 1.0 / np.maximum(deviation, 1e-9), 0.0)

    def dense() -> DenseNetwork:
        layers = (first.weight.T, first.bias, last.weight.T, last.bias)
        return DenseNetwork(mean, scale, *(w.detach().numpy().copy() for w in layers))

    constant_network = dense()
    standardised = torch.from_numpy(constant_network.standardised(inputs))

    def batches(epoch: int) -> Iterator[Rows]:
        order = np.random.default_rng((p.seed, epoch)).permutation(rows)
        yield from (order[begin : begin + p.batch] for begin in range(0, len(order), p.batch))

    def worth(of: Any) -> float:
        with torch.no_grad():
            return -float(loss(of(standardised[judged]), judged))

    constant_loss = -worth(network.eval())
    training = EpochTraining(
        Task(network, batches, lambda chosen: loss(network(standardised[chosen]), chosen), worth),
        TrainingParameters(
            learning_rate=p.learning_rate,
            weight_decay=p.weight_decay,
            warm_up=_WARM_UP,
            largest_gradient=_LARGEST_GRADIENT,
            averaged=1,
            epochs=p.epochs,
            steps=-(-len(rows) // p.batch),
        ),
    )
    training.run()
    held_out_loss = -max(training.worths)
    if held_out_loss >= constant_loss:
        return DenseFit(constant_network, 0, constant_loss, constant_loss)
    network.load_state_dict(training.network.state_dict())
    return DenseFit(dense(), training.best_epoch, held_out_loss, constant_loss)


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
