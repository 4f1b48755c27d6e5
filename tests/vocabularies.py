"""Small vocabularies of every kind, built in the test: byte-level BPE, SentencePiece-like with byte fallback, toys."""

from __future__ import annotations

from functools import lru_cache

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from healfsa.vocab import Vocabulary

TEXT = [
    'The company hired an intermediate developer: {"name": "Bob", "age": 42, "tags": ["x", "y"]}',
    "def f(x):\n    return x * 2 + 10  # größer als null\n",
    "https://example.org/path?query=1&other=2024-12-31 naïve café 東京 🎉 été",
    "aaaa aaab abab abba foo bar foobar 0123456789 00 11 3.14e-10 true false null",
]


@lru_cache(None)
def byte_level() -> Vocabulary:
    """Byte-level BPE with all 256 bytes, two special tokens of which one ends a text, holes behind."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<|end|>", "<tool>"],
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT * 4, trainer)
    return Vocabulary.from_tokenizer(tokenizer, vocab_size=tokenizer.get_vocab_size() + 37, eos_ids=[0])


@lru_cache(None)
def sentencepiece_like() -> Vocabulary:
    """BPE over ▁-words with byte fallback, as Llama 2 has it."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{b:02X}>": b + 3 for b in range(256)}
    merges = []
    for piece in ["▁", "a", "b", "e", "o", "f", "r", "n", "t", "h", "0", "1", "2", '"', ":", "{", "}", "é", "京"]:
        vocab.setdefault(piece, len(vocab))
    for left, right in [
        ("a", "b"), ("▁", "a"), ("f", "o"), ("fo", "o"), ("t", "h"), ("th", "e"), ("▁", "the"), ("▁", "▁"),
        ("▁▁", "▁▁"),
        ("1", "2"), ('"', ":"), ("{", '"'), ("b", "a"), ("ab", "a"), ("foo", "ba"), ("n", "o"), ("▁", "京"),
    ]:  # fmt: skip
        merges.append((left, right))
        vocab.setdefault(left + right, len(vocab))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in ("<unk>", "<s>", "</s>")])
    return Vocabulary.from_tokenizer(tokenizer, eos_ids=[2])


def plain(pieces: list[str], merges: list[tuple[str, str]], specials: list[str]) -> Vocabulary:
    """A BPE tokenizer without bytes: the pieces are all it can write. The first special ends a text."""
    vocab = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in specials])
    return Vocabulary.from_tokenizer(tokenizer, eos_ids=[len(pieces)])


@lru_cache(None)
def toy() -> Vocabulary:
    """Eight tokens: a, b, 0, ab, ba, "a0" (so 0 is a token, too), abb and the end."""
    return plain(["a", "b", "0", "ab", "ba", "a0", "abb"], [("a", "b"), ("b", "a"), ("a", "0"), ("ab", "b")], ["<end>"])


@lru_cache(None)
def inner() -> Vocabulary:
    """The byte c has no token of its own; it is only inside longer ones."""
    pieces = ["a", "b", "0", "ab", "abc", "ca", "é", "bcb", "c0"]
    return plain(pieces, [], ["<end>", "<tool>"])


@lru_cache(None)
def missing() -> Vocabulary:
    """ASCII letters, digits and some signs only, with a few words; many bytes cannot be made."""
    signs = [chr(c) for c in range(32, 127) if chr(c) not in "~`^|\\"]
    words = ["the", " the", "foo", "foobar", "12", "2024", '":', '{"', "aaa", "ab", "  "]
    return plain(signs + words, [], ["<end>", "<tool>"])


@lru_cache
def doubled() -> Vocabulary:
    """All 256 bytes, and most of ASCII once more: there are more tokens than trie nodes."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{b:02X}>": b + 3 for b in range(256)}
    for code in range(33, 127):
        vocab[chr(code)] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in ("<unk>", "<s>", "</s>")])
    return Vocabulary.from_tokenizer(tokenizer, eos_ids=[2])


ALL = {f.__name__: f for f in (byte_level, sentencepiece_like, toy, inner, missing, doubled)}
