"""Small tokenizers of every family, built on the spot."""

from __future__ import annotations

import io
import json
from functools import lru_cache
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = [
    'The company hired an intermediate developer: {"name": "Bob", "age": 42, "tags": ["x", "y"]}',
    "def f(x):\n    return x * 2 + 10  # größer als null\n        if x:\n\t\tpass\n\n\n",
    "https://example.org/path?query=1&other=2024-12-31 naïve café 東京 🎉 été don't we'll",
    "aaaa aaab abab abba foo bar foobar 0123456789 00 11 3.14e-10 true false null",
] * 4


def byte_level(*, specials: tuple[str, ...] = ("<|end|>",), alphabet: list[str] | None = None) -> Tokenizer:
    """Return a trained byte-level BPE; the specials have the ids 0, 1, ..."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet is None else alphabet,
        limit_alphabet=256 if alphabet is None else len(alphabet),
        special_tokens=list(specials),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def sentencepiece_style(*, prefix: str = "normalizer") -> Tokenizer:
    """Return a BPE with U+2581 and byte fallback; the dummy prefix comes from normaliser or Metaspace, or is absent."""
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2} | {f"<0x{byte:02X}>": byte + 3 for byte in range(256)}
    rules = [("t", "h"), ("th", "e"), ("▁", "the"), ("▁", "▁"), ("▁▁", "▁▁"), ("f", "o"), ("fo", "o"), ("1", "2")]
    for piece in [*'▁abcdefghijklmnopqrstuvwxyz0123456789{}:,<>/\n"é京', *(left + right for left, right in rules)]:
        vocab.setdefault(piece, len(vocab))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=rules, byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    parts = [normalizers.Replace(" ", "▁")]
    if prefix == "normalizer":
        parts.insert(0, normalizers.Prepend("▁"))
    if prefix == "metaspace":
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    else:
        tokenizer.normalizer = normalizers.Sequence(parts)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in ("<unk>", "<s>", "</s>")])
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A $B", [("<s>", 1), ("</s>", 2)])
    return tokenizer


def unigram(*, byte_fallback: bool = True) -> Tokenizer:
    """Return a unigram model with Metaspace; `</s>` is one of its pieces, as in real ones."""
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", -1.0)]
    if byte_fallback:
        pieces += [(f"<0x{byte:02X}>", -20.0) for byte in range(256)]
    words = ("▁", "▁the", "▁foo", "bar", "the", "▁a", "12", "ab", "abc", "é")
    pieces += [(word, -4.0 - 0.1 * at) for at, word in enumerate(words)]
    letters = 'abcdefghijklmnopqrstuvwxyz0123456789{}:,<>/\n"'
    pieces += [(letter, -9.0 - 0.01 * at) for at, letter in enumerate(letters)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=byte_fallback))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(name, normalized=False) for name in ("<unk>", "<s>", "</s>")])
    return tokenizer


def changed(tokenizer: Tokenizer, **parts: Any) -> dict[str, Any]:
    """Return the JSON of a tokenizer with top-level parts replaced."""
    return json.loads(tokenizer.to_str()) | parts


def with_padding_rows(tokenizer: Tokenizer, rows: int) -> Tokenizer:
    """Return the tokenizer as a GGUF file gives it: rows without a token stand in the vocabulary as [PAD<id>]."""
    whole = json.loads(tokenizer.to_str())
    vocab = whole["model"]["vocab"]
    start = 1 + max(vocab.values())
    vocab |= {f"[PAD{token_id}]": token_id for token_id in range(start, start + rows)}
    return Tokenizer.from_str(json.dumps(whole))


@lru_cache(None)
def sentencepiece_model(kind: str = "bpe", *, size: int = 400, user: tuple[str, ...] = ()) -> bytes:
    """Return a SentencePiece model that is trained now."""
    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in CORPUS for line in text.split("\n") if line]),
        model_writer=written, model_type=kind, vocab_size=size, byte_fallback=True, minloglevel=2,
        control_symbols=["[INST]"], user_defined_symbols=list(user), normalization_rule_name="identity",
        remove_extra_whitespaces=False, hard_vocab_limit=False, num_threads=1, character_coverage=0.98,
    )  # fmt: skip
    return written.getvalue()


@lru_cache(None)
def tiktoken_encoding(*, missing: bytes = b"") -> Any:
    """Return a tiktoken encoding made by hand from a trained byte-level BPE."""
    import tiktoken

    from healfsa.vocab.spelling import bytes_of_alphabet

    state = json.loads(byte_level(specials=()).model.__getstate__())
    strings = sorted(state["vocab"], key=state["vocab"].__getitem__)
    singles = [bytes([byte]) for byte in range(256)]
    longer = [piece for piece in bytes_of_alphabet(strings) if len(piece) > 1]
    ranks: dict[bytes, int] = {piece: rank for rank, piece in enumerate([*singles, *longer])}
    kept = {piece: rank for piece, rank in ranks.items() if not any(byte in missing for byte in piece)}
    words = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    pattern = words + r"|\s*[\r\n]|\s+(?!\S)|\s+"
    specials = {"<|endoftext|>": len(ranks) + 5, "<|tool|>": len(ranks) + 6}
    return tiktoken.Encoding("by hand", pat_str=pattern, mergeable_ranks=kept, special_tokens=specials)


def merged(vocabulary: Any, text: str) -> list[int]:
    """Return the ids of `text` by the adapter's own rules: cut, then merge symbols, lowest rank and leftmost first."""
    spelled = vocabulary.normalize(text)
    spans = vocabulary.tokenizer.pre_tokenize(spelled)
    return [token_id for start, end in spans for token_id in _merged_span(vocabulary, spelled[start:end])]


@lru_cache(None)
def _rules(vocabulary: Any) -> dict[tuple[int, int], tuple[int, int]]:
    """Return rank and result of each pair that merges."""
    table = vocabulary.tokenizer.merges()
    left, right, rank, target = (column.tolist() for column in (table.left, table.right, table.rank, table.merged))
    return {(left[k], right[k]): (rank[k], target[k]) for k in range(len(rank))}


def _merged_span(vocabulary: Any, span: str) -> list[int]:
    adapter, rules = vocabulary.tokenizer, _rules(vocabulary)
    if adapter.ignore_merges:
        low, high = vocabulary.trie.ranks(span.encode())
        if low < high and vocabulary.bytes_of(int(vocabulary.trie.order[low])) == span.encode():
            return [int(vocabulary.trie.order[low])]
    ids = adapter.symbols(span)
    while True:
        pairs = [(left, right) for left, right in zip(ids, ids[1:], strict=False)]
        found = [(*rules[pair], at) for at, pair in enumerate(pairs) if pair in rules]
        if not found:
            return ids
        _, target, at = min(found, key=lambda rule: (rule[0], rule[2]))
        ids[at : at + 2] = [target]
