"""What rows are compared with: tokens by a walk that looks at everything."""

from __future__ import annotations

import numpy as np

from healfsa.index import Index, kernels


def plainly(index: Index, state: int) -> np.ndarray:
    """Return the tokens of a state, sorted, by a walk that skips nothing."""
    stack, found, later = index.tables.scratch()
    args = index.tables.trie, stack, found, later, state, 0, kernels.WHOLE
    return np.sort(found[: index.automaton.run(kernels.walk, *args)])
