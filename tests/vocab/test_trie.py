"""The flat trie against a plain one."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from healfsa.vocab import Trie, kernels

_PIECES = st.lists(st.binary(max_size=4) | st.sampled_from([b"a", b"ab", b"abc", b"\xff", b"\x00\x00"]), max_size=40)


def built(pieces: list[bytes]) -> Trie:
    """Return the trie of the pieces that are not empty."""
    offsets = np.zeros(len(pieces) + 1, dtype=np.int32)
    offsets[1:] = np.cumsum([len(piece) for piece in pieces])
    ids = np.array([i for i, piece in enumerate(pieces) if piece], dtype=np.int32)
    return Trie.build(np.frombuffer(b"".join(pieces), dtype=np.uint8), offsets, ids)


@settings(max_examples=150, deadline=None)
@given(_PIECES)
def test_arrays_are_the_sorted_prefixes(pieces):
    trie = built(pieces)
    ranked = sorted((piece, i) for i, piece in enumerate(pieces) if piece)
    prefixes = sorted({piece[:n] for piece, _ in ranked for n in range(len(piece) + 1)} | {b""})
    assert trie.order.tolist() == [i for _, i in ranked]
    assert trie.n_nodes == len(prefixes)
    assert trie.depth.tolist() == [len(prefix) for prefix in prefixes]
    assert trie.byte.tolist() == [prefix[-1] if prefix else 0 for prefix in prefixes]
    for node, prefix in enumerate(prefixes):
        below = [rank for rank, (piece, _) in enumerate(ranked) if piece.startswith(prefix)]
        assert trie.find(prefix) == node
        assert trie.skip[node] == node + sum(other.startswith(prefix) for other in prefixes)
        assert [trie.first[node], trie.first[trie.skip[node]]] == ([below[0], below[-1] + 1] if below else [0, 0])
        assert trie.own[node] == sum(piece == prefix for piece, _ in ranked)
        assert trie.tokens(prefix).tolist() == [ranked[rank][1] for rank in below]


@settings(max_examples=100, deadline=None)
@given(_PIECES, st.binary(max_size=5))
def test_ranks_of_any_prefix(pieces, prefix):
    trie = built(pieces)
    low, high = trie.ranks(prefix)
    assert sorted(trie.order[low:high].tolist()) == [
        i for i, piece in enumerate(pieces) if piece and piece.startswith(prefix)
    ]
    assert (trie.find(prefix) < 0) == (prefix != b"" and low == high)


def test_ranks_and_ids_are_inverse():
    trie = built([b"b", b"", b"a", b"b", b"ab"])
    assert trie.order.tolist() == [2, 4, 0, 3]
    assert trie.rank.tolist() == [2, -1, 0, 3, 1]
    assert trie.deepest == 2 and trie.n_tokens == 4


def test_packed_columns_are_where_the_kernels_say():
    trie = built([b"ab", b"a", b"c"])
    packed = trie.packed
    assert packed[kernels.P_MAGIC] == kernels.MAGIC
    labels = packed[packed[kernels.P_LABEL] :][: trie.n_nodes + 1]
    assert labels.tolist() == [0, 1 << 8 | ord("a"), 2 << 8 | ord("b"), 1 << 8 | ord("c"), 0]
    assert packed[packed[kernels.P_SKIP] :][:5].tolist() == [4, 3, 3, 4, 4]
    assert packed[packed[kernels.P_FIRST] :][:5].tolist() == [0, 0, 1, 2, 3]
    assert packed[packed[kernels.P_ORDER] :].tolist() == [1, 0, 2]


def test_columns_cannot_be_written():
    with pytest.raises(ValueError):
        built([b"a"]).order[0] = 5


def test_a_token_of_a_thousand_bytes():
    trie = built([b"x" * 1024, b"x" * 1023])
    assert trie.deepest == 1024 and trie.n_nodes == 1025 and trie.ranks(b"x" * 1024) == (1, 2)


def test_without_the_compiler():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from vocab.test_trie import built\n"
        "trie = built([b'ab', b'', b'a', b'\\xff', b'ab'])\n"
        "print(trie.order.tolist(), trie.skip.tolist(), trie.ranks(b'a'), trie.find(b'b'))"
    )
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, tests], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[2, 0, 4, 3] [4, 3, 3, 4, 4] (0, 3) -1"
