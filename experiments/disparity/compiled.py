"""Train the study's networks one by one in a compiled loop that touches only the columns in which a record is not zero.

A one-hot record has 13 entries in 89 columns, so that most of what the library's engine multiplies is zero. This loop takes the same initial weights,
batches and standardisation as :class:`reticent.train.NetworkTrainer` with eight hidden units and two classes, and gives the same networks up to rounding;
``run.py`` compares the two on the first networks of every cell.

A model sees ``raw / scale - m`` with ``m = centre / scale``, which is not sparse. But the first layer needs only ``base = b - sum_j m_j W_j``, a sum of weights over the entries of the record,
and the step of the weights is one of these entries plus ``m_j`` times a common vector. So weights are held as ``W_j = S_j + m_j t``: a step changes S in the batch's entries, t, and the base.
"""

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray

from reticent.data import Table
from reticent.product import Encoder
from reticent.train import Network

__all__ = ["answers_of"]

UNITS = (
    8  # known to the compiler, which then keeps the units of a record in one register
)
_ZERO, _ONE = np.float32(0), np.float32(1)


def entries_of(
    matrix: NDArray[np.float32],
) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
    """Return the columns and the values of the entries that are not zero, (n, most); shorter records are filled with zeros."""
    if not np.isfinite(matrix).all():
        raise ValueError("the table has missing numbers, which this loop does not know")
    present = matrix != 0
    order = np.argsort(~present, axis=1, kind="stable")
    columns = order[:, : present.sum(axis=1).max()]
    return columns.astype(np.uint32), np.take_along_axis(matrix, columns, axis=1)


def answers_of(
    table: Table,
    masks: NDArray[np.bool_],
    seeds: NDArray[np.int64],
    network: Network,
    *,
    nudge: float = 0.0,
) -> NDArray[np.float32]:
    """Return the probability of the second class by every network for every record, (M, n).

    Parameters
    ----------
    table : Table
        The records.
    masks : array of bool, shape (M, n)
        Who trains each network.
    seeds : array of int, shape (M,)
        Seed of each network: its initial weights, then its batches.
    network : Network
        One hidden layer of eight units with ReLU, plain gradient descent.
    nudge : float
        Share by which all initial weights are made larger: one of the size of rounding tells what rounding does to a training.
    """
    plain = network.optimiser.is_plain and not any(network.dropouts) and not network.l2
    if network.hidden != (UNITS,) or network.activation != "relu" or not plain:
        raise ValueError(f"this loop trains no {network!r}")
    encoder = Encoder.learned(table)
    matrix = encoder.matrix(table.features)
    columns, raw = entries_of(matrix)
    centres, scales = encoder.standardisation(matrix, masks)
    labels = table.target.astype(np.float32)
    answers = np.empty(masks.shape, np.float32)
    for k, (mask, seed) in enumerate(zip(masks, seeds, strict=True)):
        m = (centres[k] / scales[k]).astype(np.float32)
        values = raw / scales[k].astype(np.float32)[columns]
        common = (values * m[columns]).sum(axis=1)
        generator = torch.Generator().manual_seed(int(seed))
        larger = np.float32(1 + nudge)
        drawn = _initial(encoder.width, generator)
        first, bias, second, last = (part * larger for part in drawn)
        members = torch.from_numpy(np.flatnonzero(mask))
        for _ in range(network.epochs):
            turn = torch.randperm(len(members), generator=generator)
            order = members[turn].numpy().astype(np.uint32)
            _epoch(
                (columns, values, common, labels),
                (first, bias, second, last),
                m,
                order,
                network.batch,
                np.float32(network.optimiser.rate),
            )
        base = bias - m @ first
        answers[k] = _asked(columns, values, first, base, second[1] - second[0])
        # What is left is the difference of the last biases, common to all records.
        answers[k] = 1 / (1 + np.exp(last[0] - last[1] - answers[k]))
    return answers


def _initial(
    inputs: int, generator: torch.Generator
) -> tuple[NDArray[np.float32], ...]:
    """Return the initial parameters in the order in which the library draws them; the first weights are (inputs, units)."""
    drawn = []
    for below, above in ((inputs, UNITS), (UNITS, 2)):
        spread = 1 / np.sqrt(below)
        for shape in ((above, below), (above, 1)):
            drawn.append((2 * torch.rand(*shape, generator=generator) - 1) * spread)
    first, bias, second, last = (part.numpy() for part in drawn)
    return np.ascontiguousarray(first.T), bias[:, 0].copy(), second, last[:, 0].copy()


@njit(cache=True, fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def _asked(columns, values, first, base, weights):
    """Return the difference of the logits of every record, without the last biases."""
    logits = np.empty(len(columns), np.float32)
    hidden = np.empty(UNITS, np.float32)
    for i in range(len(columns)):
        for h in range(UNITS):
            hidden[h] = base[h]
        for e in range(columns.shape[1]):
            v, j = values[i, e], columns[i, e]
            for h in range(UNITS):
                hidden[h] += v * first[j, h]
        logit = _ZERO
        for h in range(UNITS):
            logit += weights[h] * (hidden[h] if hidden[h] > _ZERO else _ZERO)
        logits[i] = logit
    return logits


@njit(cache=True, fastmath={"contract", "nsz", "reassoc"}, error_model="numpy")
def _epoch(records, parameters, m, order, batch, rate):  # noqa: PLR0912, PLR0915 - one loop, which the compiler must see as a whole
    """Take the steps of one epoch, in place."""
    columns, values, common, labels = records
    first, bias, second, last = parameters
    entries = columns.shape[1]
    shift = np.zeros(UNITS, np.float32)  # t
    base = bias.copy()
    square = _ZERO
    for j in range(len(m)):
        square += m[j] * m[j]
        for h in range(UNITS):
            base[h] -= m[j] * first[j, h]
    hidden = np.empty(UNITS, np.float32)
    back = np.empty((batch, UNITS), np.float32)
    total, weighted = np.empty(UNITS, np.float32), np.empty(UNITS, np.float32)
    up = np.empty(
        UNITS, np.float32
    )  # step of the last layer; the two classes differ in the sign
    for start in range(0, len(order), batch):
        stop = min(start + batch, len(order))
        share = _ONE / np.float32(stop - start)
        over = _ZERO
        for h in range(UNITS):
            total[h] = weighted[h] = up[h] = _ZERO
        for r in range(start, stop):
            i = order[r]
            q = common[i]
            a0 = base[0] + q * shift[0]
            a1 = base[1] + q * shift[1]
            a2 = base[2] + q * shift[2]
            a3 = base[3] + q * shift[3]
            a4 = base[4] + q * shift[4]
            a5 = base[5] + q * shift[5]
            a6 = base[6] + q * shift[6]
            a7 = base[7] + q * shift[7]
            for e in range(entries):
                v, j = values[i, e], columns[i, e]
                a0 += v * first[j, 0]
                a1 += v * first[j, 1]
                a2 += v * first[j, 2]
                a3 += v * first[j, 3]
                a4 += v * first[j, 4]
                a5 += v * first[j, 5]
                a6 += v * first[j, 6]
                a7 += v * first[j, 7]
            hidden[0], hidden[1], hidden[2], hidden[3] = a0, a1, a2, a3
            hidden[4], hidden[5], hidden[6], hidden[7] = a4, a5, a6, a7
            logit = last[1] - last[0]
            for h in range(UNITS):
                hidden[h] = hidden[h] if hidden[h] > _ZERO else _ZERO
                logit += (second[1, h] - second[0, h]) * hidden[h]
            delta = (_ONE / (_ONE + np.exp(-logit)) - labels[i]) * share
            over += delta
            k = r - start
            for h in range(UNITS):
                up[h] += delta * hidden[h]
                slope = delta * (second[1, h] - second[0, h])
                back[k, h] = slope if hidden[h] > _ZERO else _ZERO
                total[h] += back[k, h]
                weighted[h] += q * back[k, h]
        for r in range(start, stop):
            i = order[r]
            k = r - start
            b0, b1, b2, b3 = back[k, 0], back[k, 1], back[k, 2], back[k, 3]
            b4, b5, b6, b7 = back[k, 4], back[k, 5], back[k, 6], back[k, 7]
            for e in range(entries):
                v, j = rate * values[i, e], columns[i, e]
                first[j, 0] -= v * b0
                first[j, 1] -= v * b1
                first[j, 2] -= v * b2
                first[j, 3] -= v * b3
                first[j, 4] -= v * b4
                first[j, 5] -= v * b5
                first[j, 6] -= v * b6
                first[j, 7] -= v * b7
        for h in range(UNITS):
            base[h] -= rate * ((_ONE + square) * total[h] - weighted[h])
            shift[h] += rate * total[h]
            bias[h] -= rate * total[h]
            second[0, h] += rate * up[h]
            second[1, h] -= rate * up[h]
        last[0] += rate * over
        last[1] -= rate * over
    for j in range(len(m)):
        for h in range(UNITS):
            first[j, h] += m[j] * shift[h]
