"""Machine code of the learned pre-tokenizer: what a token that follows a text does to the text's cuts.

In: the segmenter's tables and the cuts that one reading of the text's end has. Out: whether a token keeps to the
    reading.
Idea: a reading says where the cuts are; each further character either settles some of them (they must be the reading's)
    or leaves several scenarios open, of which one must be the reading's at the end.  No cut may lie inside the token.
Cost: some ns a byte.
Source: own.
Not here: where the tables come from (`segmenter.py`), merges.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, njit, types

from healfsa.healing.kernels import I4, I4W, I32, U1

STEPS = types.Array(types.int32, 3, "C", readonly=True)
SCENES = types.Array(types.int32, 2, "C", readonly=True)
CLASSES = types.Array(types.int16, 1, "C", readonly=True)
ASK = -2  # the pre-tokenizer has to be asked first; what is in `asked`

# What is known at a place in the token; positions count characters from the text's end.
STATE = 0  # of the segmenter
COUNT = 1  # whole characters of the token so far
NEXT = 2  # how many of the reading's cuts are settled
POINT = 3  # the character that is being read
MISSING = 4  # how many bytes it lacks
LEAST = 5  # the least byte that may come next in it
MOST = 6  # the greatest
FIELDS = 7

# What ends a list of `SCENES`.
END_OF_SCENE = -1
END = -2


@njit(boolean(I4W, I32), cache=True, nogil=True)
def read_byte(place, byte):
    """Take one more byte of UTF-8; return whether the text is still well-formed."""
    if place[MISSING] > 0:
        if byte < place[LEAST] or byte > place[MOST]:
            return False
        place[POINT] = (place[POINT] << 6) | (byte & 0x3F)
        place[MISSING] -= 1
    elif byte < 0x80:
        place[POINT] = byte
    elif 0xC2 <= byte <= 0xF4:
        place[MISSING] = 1 + (byte >= 0xE0) + (byte >= 0xF0)
        place[POINT] = byte & (0x3F >> place[MISSING])
        place[LEAST] = 0xA0 if byte == 0xE0 else 0x90 if byte == 0xF0 else 0x80
        place[MOST] = 0x9F if byte == 0xED else 0x8F if byte == 0xF4 else 0xBF
        return True
    else:
        return False
    place[LEAST], place[MOST] = 0x80, 0xBF
    return True


@njit(I32(STEPS, CLASSES, I4, I4W, I4W), cache=True, nogil=True)
def read_character(steps, classes, cuts, place, asked):
    """Take the character that is complete: 1 it keeps to the reading so far, 0 it does not, ASK."""
    state = place[STATE]
    kind = np.int32(classes[place[POINT]])
    if kind < 0 or steps[state, kind, 0] < 0:
        asked[0], asked[1] = state, place[POINT]
        return np.int32(ASK)
    place[STATE] = steps[state, kind, 0]
    place[COUNT] += 1
    for k in range(1, steps.shape[2]):
        distance = steps[state, kind, k]
        if distance < 0:
            break
        at = place[COUNT] - distance
        if at > 0 or place[NEXT] == cuts.size or cuts[place[NEXT]] != at:
            return np.int32(0)
        place[NEXT] += 1
    return np.int32(1)


@njit(boolean(SCENES, I4, I4W), cache=True, nogil=True)
def keeps(scenes, cuts, place):
    """Return whether some continuation leaves exactly the reading's cuts before here."""
    if place[COUNT] == 0:
        return True
    due, fits = place[NEXT], True
    for k in range(scenes.shape[1]):
        distance = scenes[place[STATE], k]
        if distance == END:
            return False
        if distance == END_OF_SCENE:
            if fits and due == cuts.size:
                return True
            due, fits = place[NEXT], True
        elif distance > 0:
            at = place[COUNT] - distance
            fits = fits and at <= 0 and due < cuts.size and cuts[due] == at
            due += 1
    return False


@njit(I32(STEPS, SCENES, CLASSES, U1, I32, I32, I4, I4W, I4W), cache=True, nogil=True)
def run(steps, scenes, classes, data, at, end, cuts, place, asked):
    """Return whether ``data[at:end]`` is well-formed behind `place` and keeps to the reading: 1, 0 or ASK."""
    for k in range(at, end):
        if not read_byte(place, np.int32(data[k])):
            return np.int32(0)
        if place[MISSING] == 0 and classes.size > 1:
            verdict = read_character(steps, classes, cuts, place, asked)
            if verdict != 1:
                return verdict
    return np.int32(classes.size == 1 or keeps(scenes, cuts, place))
