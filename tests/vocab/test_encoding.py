"""Text and bytes to ids and back."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vocab.builders import byte_level, sentencepiece_style, tiktoken_encoding, unigram

from healfsa.errors import VocabularyError
from healfsa.vocab import HOLE, SPECIAL, TEXT, Vocabulary
from healfsa.vocab.encoding import stretches

BYTE_LEVEL = Vocabulary.from_tokenizer(byte_level())
MARKED = Vocabulary.from_tokenizer(sentencepiece_style())
NO_PREFIX = Vocabulary.from_tokenizer(sentencepiece_style(prefix="none"))
TIKTOKEN = Vocabulary.from_tokenizer(tiktoken_encoding())
UNIGRAM = Vocabulary.from_tokenizer(unigram())
EXACT = [BYTE_LEVEL, NO_PREFIX, TIKTOKEN]
PREFIXED = [MARKED, UNIGRAM]

PARTS = st.lists(st.text(max_size=6).map(str.encode) | st.binary(max_size=4), max_size=5).map(b"".join)


@settings(max_examples=150, deadline=None)
@given(PARTS)
def test_any_bytes_come_back(data):
    for vocabulary in EXACT:
        if b"\xe2\x96\x81" not in data:  # U+2581 is a space to the SentencePiece kind
            assert vocabulary.decode_bytes(vocabulary.encode(data)) == data
    for vocabulary in PREFIXED:
        if data and b"\xe2\x96\x81" not in data and not data.startswith(b" "):
            assert vocabulary.decode_bytes(vocabulary.encode(data)) == b" " + data


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=30))
def test_bytes_of_text_are_encoded_like_the_text(text):
    for vocabulary in (*EXACT, *PREFIXED):
        assert vocabulary.encode(text.encode()) == vocabulary.encode(text)
        assert vocabulary.unencodable(text) is None
        assert vocabulary.decode_bytes(vocabulary.encode(text)) == vocabulary.normalize(text).encode()


@settings(max_examples=200, deadline=None)
@given(PARTS)
def test_stretches_are_text_and_what_is_none(data):
    runs = list(stretches(data))
    assert b"".join(run.encode() if isinstance(run, str) else run for run in runs) == data
    assert all(isinstance(a, str) != isinstance(b, str) for a, b in zip(runs, runs[1:], strict=False))
    assert all(runs)


@pytest.mark.parametrize("vocabulary", [*EXACT, *PREFIXED])
def test_an_unfinished_character(vocabulary):
    whole = "foo 東".encode()
    for cut in (1, 2):
        written = vocabulary.decode_bytes(vocabulary.encode(whole[:-cut]))
        assert written.lstrip(b" ") == whole[:-cut]


def test_text_behind_stray_bytes_gets_no_prefix():
    assert MARKED.decode_bytes(MARKED.encode(b"a\xffb")) == b" a\xffb"
    assert MARKED.decode_bytes(MARKED.encode(b"\xffb")) == b" \xffb"
    assert MARKED.decode_bytes(MARKED.encode(b"a\xff</s>b", parse_special=True), specials=True)[:7] == b" a\xff</s>"


def test_begin_of_text_around_stray_bytes():
    assert MARKED.encode(b"a\xff", add_special_tokens=True) == [1, *MARKED.encode(b"a\xff")]
    assert BYTE_LEVEL.encode(b"a\xff", add_special_tokens=True) == BYTE_LEVEL.encode(b"a\xff")


def test_stray_bytes_are_merged_as_the_model_would():
    ids = BYTE_LEVEL.encode("東".encode()[:2])
    assert BYTE_LEVEL.decode_bytes(ids) == "東".encode()[:2] and len(ids) <= 2
    assert TIKTOKEN.decode_bytes(TIKTOKEN.encode(b"ab\xe6\x9d")) == b"ab\xe6\x9d"


def test_lone_surrogates_are_refused():
    with pytest.raises(VocabularyError, match=r"lone surrogate U\+D800 at character 1"):
        BYTE_LEVEL.encode("a\ud800")


@pytest.mark.parametrize("vocabulary", [BYTE_LEVEL, MARKED, TIKTOKEN, UNIGRAM])
def test_ids_out_of_range(vocabulary):
    for token_id in (-1, vocabulary.size, 10**9):
        with pytest.raises(VocabularyError, match=f"token id {token_id} is not in the vocabulary"):
            vocabulary.bytes_of(token_id)
        with pytest.raises(VocabularyError):
            vocabulary.decode_bytes([0, token_id])


@pytest.mark.parametrize("vocabulary", [BYTE_LEVEL, MARKED, TIKTOKEN, UNIGRAM])
def test_arrays_agree_with_bytes_of(vocabulary):
    for token_id in range(vocabulary.size):
        piece = vocabulary.data[vocabulary.offsets[token_id] : vocabulary.offsets[token_id + 1]].tobytes()
        kind = vocabulary.kinds[token_id]
        assert vocabulary.bytes_of(token_id) == (piece or None)
        assert (kind == TEXT) == bool(piece) and kind in (HOLE, TEXT, SPECIAL)
        assert (vocabulary.trie.rank[token_id] >= 0) == (kind == TEXT)
    assert vocabulary.trie.n_tokens == (vocabulary.kinds == TEXT).sum()
    singles = {piece for t in range(vocabulary.size) if len(piece := vocabulary.bytes_of(t) or b"") == 1}
    assert vocabulary.spellable == {piece[0] for piece in singles}


def test_names_for_messages():
    assert BYTE_LEVEL.name_of(0) == "<|end|>"
    assert BYTE_LEVEL.name_of(BYTE_LEVEL.encode("a")[0]) == "'a'"
    assert BYTE_LEVEL.name_of(BYTE_LEVEL.encode(b"\xff")[0]) == "b'\\xff'"
    assert TIKTOKEN.name_of(TIKTOKEN.size - 3) == f"<hole {TIKTOKEN.size - 3}>"


def test_nothing_can_be_written():
    for array in (BYTE_LEVEL.data, BYTE_LEVEL.offsets, BYTE_LEVEL.kinds, BYTE_LEVEL.trie.order):
        assert not array.flags.writeable
    with pytest.raises(TypeError):
        BYTE_LEVEL.specials["x"] = 1
    with pytest.raises(AttributeError):
        BYTE_LEVEL.size = 5


def test_threads_share_a_vocabulary():
    wrong = []

    def work(number: int) -> None:
        for turn in range(50):
            text = f"foo {number} bar {turn} größer"
            if BYTE_LEVEL.decode_bytes(BYTE_LEVEL.encode(text)) != text.encode():
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
