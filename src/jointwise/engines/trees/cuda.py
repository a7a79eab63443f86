r"""The pass over a mixture of trees on an NVIDIA card, in float64.

Complete rows look up one number for each cell and its parent, all columns side by side, and add posteriors at the same
places. Their pairs are matrix products: with X the states of all columns as zeros and ones, and P_r the posteriors of a
component, the counts of all pairs are :math:`X^\top \mathrm{diag}(P_r)\, X`.

Rows with gaps go through the messages of `reference`, all rows of a batch side by side. The joint probabilities of the
states of all columns, in the order of the tree, are one matrix for each row, filled column by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray, IntArray
from jointwise.engines.base import bin_starts
from jointwise.engines.cuda import TABLE_BYTES, Blocks, check_cuda, unpacked
from jointwise.engines.trees.base import EdgeSums, PairSums, TreeComponents, TreeEngine, check_pairs

# Bytes of all arrays of a batch of rows.
BATCH_BYTES = 1 << 30


class CudaTreeEngine(TreeEngine):
    """Sums of a pass on the card, with the codes kept there or sent block by block; see the module.

    Parameters
    ----------
    codes, n_bins, weights
        As those of `ReferenceTreeEngine`; codes may also be a list of tensors of shape (N, rows) on the card.
    device : str
        A device of PyTorch: "cpu" computes the same without a card, slowly.
    """

    def __init__(
        self,
        codes: CodeArray | list[Any],
        n_bins: Sequence[int],
        weights: FloatArray | None = None,
        device: str = "cuda",
    ) -> None:
        if device == "cuda":
            check_cuda()
        self._n_bins = tuple(n_bins)
        self._device = device
        self._blocks = Blocks(codes, weights, device)

    def edge_sums(self, components: TreeComponents) -> EdgeSums:
        """Return the expected counts of all edges; see `TreeEngine`."""
        components.forest.check(self._n_bins)
        mixture, N = _Mixture(components, self._device), len(self._n_bins)
        edges = _Scattered(components.forest.n_entries, self._device)
        # places and logarithms of all cells; and of gaps, the probabilities given the parents and a few tables more
        sizes = 5 * N + 4 * mixture.F, mixture.n_conditionals + 4 * max(self._n_bins) ** 2
        for codes, weights, complete in self._batches(*sizes):
            if complete:
                posteriors = mixture.posteriors(mixture.looked_up(codes), weights)
                for r in range(mixture.F):
                    edges.add(mixture.places(codes, r), posteriors[:, r])
            else:
                posteriors = mixture.posteriors(mixture.summed_out(codes), weights)
                for r in range(mixture.F):
                    edges.table += _Tree(mixture, r, codes).edge_counts(posteriors[:, r])
        return EdgeSums(_array(mixture.totals), _array(edges.sums()), float(mixture.likelihood))

    def pair_sums(self, components: TreeComponents, pairs: IntArray) -> PairSums:
        """Return the expected counts of pairs of columns; see `TreeEngine`."""
        import torch

        components.forest.check(self._n_bins)
        mixture, states = _Mixture(components, self._device), sum(self._n_bins)
        # of each asked count, its place in the table of all states against all states
        asked = _tensor(_pair_places(self._n_bins, check_pairs(pairs, len(self._n_bins))), self._device)
        counts = torch.zeros((len(asked), mixture.F), dtype=torch.float64, device=self._device)
        nodes = torch.zeros((states, mixture.F), dtype=torch.float64, device=self._device)
        sizes = 5 * len(self._n_bins) + 4 * (states + mixture.F), mixture.n_conditionals + 4 * states**2
        for codes, weights, complete in self._batches(*sizes):
            if complete:
                posteriors = mixture.posteriors(mixture.looked_up(codes), weights)
                ones = torch.cat([mixture.possible(codes, n) for n in range(len(codes))], dim=1).double()
                nodes += ones.T @ posteriors
                for r in range(mixture.F):
                    counts[:, r] += ((ones * posteriors[:, r, None]).T @ ones).reshape(-1)[asked]
            else:
                posteriors = mixture.posteriors(mixture.summed_out(codes), weights)
                for r in range(mixture.F):
                    tree = _Tree(mixture, r, codes)
                    nodes[:, r] += posteriors[:, r] @ torch.cat(tree.beliefs, dim=1)
                    counts[:, r] += tree.joint_counts(posteriors[:, r]).reshape(-1)[asked]
        return PairSums(_array(mixture.totals), _array(counts), _array(nodes), float(mixture.likelihood))

    def _batches(self, complete_size: int, gapped_size: int) -> Iterator[tuple[Any, Any, bool]]:
        """Yield codes (N, n), weights (n,) and whether the rows are complete; sizes are numbers held for each row."""
        import torch

        n_bins = _tensor(np.array(self._n_bins), self._device)[:, None]
        for block, weights in self._blocks:
            # of columns, so that the codes of a long block are not all unpacked at once
            unseen = torch.zeros(block.shape[1], dtype=torch.bool, device=self._device)
            for column, bins in zip(block, n_bins, strict=True):
                unseen |= unpacked(column) >= bins
            for size, chosen in ((complete_size, ~unseen), (gapped_size, unseen)):
                rows = torch.nonzero(chosen)[:, 0]
                step = max(1, BATCH_BYTES // (8 * size))
                for start in range(0, len(rows), step):
                    own = rows[start : start + step]
                    weight = torch.ones(len(own), dtype=torch.float64, device=self._device)
                    yield unpacked(block[:, own]), weight if weights is None else weights[own], chosen is not unseen


class _Mixture:
    """The components on the card, and the totals and log-likelihood of the rows seen so far."""

    def __init__(self, components: TreeComponents, device: str) -> None:
        import torch

        forest = components.forest
        self.forest, self.F, self.device = forest, forest.n_trees, device
        self.logs = _tensor(components.logs, device)
        self._log_weights = _tensor(components.log_weights, device)
        self._parents = _tensor(forest.parents, device)
        self._starts = _tensor(forest.starts[:-1].reshape(forest.parents.shape), device)
        self._n_bins = _tensor(np.array(forest.n_bins), device)
        # of all conditional tables of one tree, the largest number of entries
        self.n_conditionals = int(np.diff(forest.starts).reshape(self.F, -1).sum(axis=1).max())
        self.totals = torch.zeros(self.F, dtype=torch.float64, device=device)
        self.likelihood = torch.zeros((), dtype=torch.float64, device=device)

    def table(self, r: int, n: int) -> Any:
        """Return the table of logarithms of column n in tree r."""
        return self.forest.table(self.logs, r, n)

    def possible(self, codes: Any, n: int) -> Any:
        """Return whether the cells of column n may be in each of its states; shape (rows, S_n)."""
        import torch

        states = torch.arange(self.forest.n_bins[n] + 1, device=self.device)
        known = codes[n, :, None] == states
        return known[:, :-1] | known[:, -1:]

    def places(self, codes: Any, r: int) -> Any:
        """Return the place in the tables of each cell of complete rows (N, n), given its parent; shape (N, n)."""
        import torch

        parents = self._parents[r]
        above = torch.where(parents[:, None] >= 0, codes[parents], 0)  # -1 is the last column, and not used
        return self._starts[r][:, None] + above * self._n_bins[:, None] + codes

    def looked_up(self, codes: Any) -> Any:
        """Return the log-densities of complete rows (N, n) in each tree; shape (n, F)."""
        import torch

        return torch.stack([self.logs[self.places(codes, r)].sum(dim=0) for r in range(self.F)], dim=1)

    def summed_out(self, codes: Any) -> Any:
        """Return the log-densities of the observed cells of rows (N, n) in each tree; shape (n, F)."""
        import torch

        return torch.stack([_Tree(self, r, codes).log_density for r in range(self.F)], dim=1)

    def posteriors(self, log_densities: Any, weights: Any) -> Any:
        """Return the weighted posteriors of rows (n, F), and add up totals and log-likelihood."""
        import torch

        shares = self._log_weights + log_densities
        log_density = torch.logsumexp(shares, dim=1, keepdim=True)
        posteriors = torch.exp(shares - log_density) * weights[:, None]
        self.totals += posteriors.sum(dim=0)
        self.likelihood += weights @ log_density[:, 0]
        return posteriors


class _Tree:
    """One component, and what it knows of some rows with gaps: the same as that of `reference`."""

    def __init__(self, mixture: _Mixture, r: int, codes: Any) -> None:
        import torch

        self._mixture, self._r = mixture, r
        self._parents, self._order = mixture.forest.parents[r].tolist(), mixture.forest.order[r].tolist()
        N, n = codes.shape
        self.log_density = torch.zeros(n, dtype=torch.float64, device=codes.device)
        inside = [torch.log(mixture.possible(codes, column).double()) for column in range(N)]  # zero, or -inf
        self._conditionals: list[Any] = [None] * N
        for column in reversed(self._order):
            terms = mixture.table(r, column) + inside[column][:, None, :]
            message = torch.logsumexp(terms, dim=2)
            self._conditionals[column] = torch.exp(terms - message[:, :, None])
            if self._parents[column] < 0:
                self.log_density += message[:, 0]
            else:
                inside[self._parents[column]] += message
        self.beliefs: list[Any] = [None] * N
        for column in self._order:
            self.beliefs[column] = (self._above(column)[:, None, :] @ self._conditionals[column])[:, 0]

    def _above(self, column: int) -> Any:
        """Return the beliefs of the parent, or one for a root."""
        parent = self._parents[column]
        return self.beliefs[parent] if parent >= 0 else self.log_density.new_ones((len(self.log_density), 1))

    def edge_counts(self, posteriors: Any) -> Any:
        """Return the expected counts of the tree's edges, laid out as the tables of all trees."""
        import torch

        counts = torch.zeros_like(self._mixture.logs)
        for column, conditional in enumerate(self._conditionals):
            shares = (posteriors[:, None] * self._above(column))[:, :, None]
            self._mixture.forest.table(counts, self._r, column)[:] = (shares * conditional).sum(dim=0)
        return counts

    def joint_counts(self, posteriors: Any) -> Any:
        """Return the expected counts of all states of all columns against each other, shape (states, states)."""
        import torch

        n_bins = self._mixture.forest.n_bins
        starts = bin_starts([n_bins[column] for column in self._order]).tolist()  # states in the order of the tree
        own = {column: slice(starts[k], starts[k + 1]) for k, column in enumerate(self._order)}
        joint = posteriors.new_empty((len(posteriors), starts[-1], starts[-1]))
        for column in self._order:
            here, beliefs = own[column], self.beliefs[column]
            joint[:, here, here] = torch.diag_embed(beliefs)
            earlier = slice(0, here.start)
            if self._parents[column] < 0:
                known = torch.diagonal(joint, dim1=1, dim2=2)[:, earlier, None]
                joint[:, earlier, here] = known * beliefs[:, None, :]
            else:
                above = own[self._parents[column]]
                joint[:, earlier, here] = joint[:, earlier, above] @ self._conditionals[column]
            joint[:, here, earlier] = joint[:, earlier, here].transpose(1, 2)
        counts = (posteriors @ joint.reshape(len(posteriors), -1)).reshape(joint.shape[1:])
        places = torch.cat([torch.arange(own[n].start, own[n].stop, device=counts.device) for n in range(len(n_bins))])
        return counts[places][:, places]


class _Scattered:
    """A table to which values are added at places: several side by side, or all threads would wait for a few cells."""

    def __init__(self, length: int, device: str) -> None:
        import torch

        self._n_copies = max(1, min(TABLE_BYTES // max(8 * length, 1), 1024))
        self._tables = torch.zeros((self._n_copies, length), dtype=torch.float64, device=device)
        self.table = self._tables[0]

    def add(self, places: Any, values: Any) -> None:
        """Add the value of each row, (n,), at its places, (N, n); neighbouring rows use different tables."""
        import torch

        copy = torch.arange(places.shape[1], device=places.device) % self._n_copies * self._tables.shape[1]
        self._tables.view(-1).index_add_(0, (places + copy).reshape(-1), values.expand_as(places).reshape(-1))

    def sums(self) -> Any:
        """Return the sums at all places."""
        return self._tables.sum(dim=0)


def _pair_places(n_bins: Sequence[int], pairs: IntArray) -> IntArray:
    """Return the place of each asked count in the flat table of all states against all states.

    >>> _pair_places([1, 2, 2], np.array([[1, 2]]))
    array([ 8,  9, 13, 14])
    """
    starts = bin_starts(n_bins)
    tables = [
        (np.arange(starts[i], starts[i + 1])[:, None] * starts[-1] + np.arange(starts[j], starts[j + 1])).ravel()
        for i, j in pairs
    ]
    return np.concatenate([*tables, np.empty(0, dtype=np.int64)])


def _tensor(array: AnyArray, device: str) -> Any:
    """Send an array."""
    import torch

    return torch.as_tensor(np.array(array), device=device)


def _array(tensor: Any) -> AnyArray:
    """Fetch a tensor."""
    found: AnyArray = tensor.cpu().numpy()
    return found
