"""Every family of tokenizers heals: tiktoken, SentencePiece, Metaspace, unigram."""

from __future__ import annotations

import random

import pytest
from healing.kit import cuts, odd_text
from vocab import builders

from healfsa.healing import heal
from healfsa.healing.canon import canon_of
from healfsa.vocab import Vocabulary


def _sentencepiece(kind: str, **options):
    sentencepiece = pytest.importorskip("sentencepiece")
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(builders.sentencepiece_model(kind, **options))
    return processor


def _tiktoken():
    pytest.importorskip("tiktoken")
    return builders.tiktoken_encoding()


FAMILIES = {
    "tiktoken": _tiktoken,
    "sentencepiece-bpe": lambda: _sentencepiece("bpe"),
    "sentencepiece-bpe-user": lambda: _sentencepiece("bpe", user=("<tool>",)),
    "metaspace": lambda: builders.sentencepiece_style(prefix="metaspace"),
    "marks": lambda: builders.sentencepiece_style(),
}
NO_BPE = {"sentencepiece-unigram": lambda: _sentencepiece("unigram"), "unigram": builders.unigram}


@pytest.mark.parametrize("name", FAMILIES)
def test_kept_ids_are_canonical(name):
    known, pick = Vocabulary.from_tokenizer(FAMILIES[name]()), random.Random(3)
    canon = canon_of(known)
    for text, prompt in cuts(pick, 150):
        healed = heal(known, prompt)
        assert tuple(known.encode(text, add_special_tokens=True)[: len(healed.keep)]) == healed.keep, (text, prompt)
    for _ in range(100):
        text = odd_text(pick)
        assert canon.encode(known.normalize(text)) == known.encode(text), text


@pytest.mark.parametrize("name", NO_BPE)
def test_without_merges_the_prompt_is_still_sacred(name):
    known, pick = Vocabulary.from_tokenizer(NO_BPE[name]()), random.Random(4)
    assert canon_of(known) is None
    for _, prompt in cuts(pick, 100, inside=False):
        healed = heal(known, prompt)
        assert known.decode_bytes(healed.keep) + healed.owed == known.normalize(prompt).encode()
