"""Tokenizers of every kind, trained on the spot, and texts that are hard to cut."""

from __future__ import annotations

import os
import random
from functools import lru_cache
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from healfsa.vocab import Vocabulary

CORPUS = [
    'The company hired an intermediate developer: {"name": "Bob", "age": 42, "tags": ["x", "y"]}\n',
    "def f(x):\n    return x * 2 + 10  # größer als null\n        if x:\n\t\tpass\n\n\n\n",
    "https://example.org/path?query=1&other=2024-12-31 naïve café 東京都 日本 🎉 été don't we'll they're I'm HE'S\n",
    "aaaa aaab abab abba foo bar foobar 0123456789 00 11 3.14e-10 true false null   12345 12 123\n",
    "Die Donaudampfschifffahrt hat gestern eine beliebige Kombination beschlossen; 中文分词，今天天气很好。\r\n",
    "((x)) [[y]] {{z}} ... --- === != <= >= :: // '' \"\" ),( }; \n  - a\n  - b\n\n",
]
CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
RIGHT_DIGITS = r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
SPECIALS = ["<|end|>", "<|user|>"]


def _split(pattern: str):
    isolated = pre_tokenizers.Split(Regex(pattern), "isolated")
    return pre_tokenizers.Sequence([isolated, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _digits():
    return pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def _byte_level(
    pre, *, size: int = 700, whole: bool = False, normalizer=None, added: tuple[str, ...] = ()
) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(ignore_merges=whole))
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=SPECIALS,
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS * 4, trainer)
    tokenizer.add_tokens([AddedToken(content, normalized=False) for content in added])
    return tokenizer


def _marked(*, dummy: bool) -> Tokenizer:
    """SentencePiece's way: spaces as marks, characters with byte fallback, no pre-tokenizer."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    parts = [normalizers.Replace(" ", "▁")]
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), *parts] if dummy else parts)
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    specials = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=900, special_tokens=specials, limit_alphabet=90, show_progress=False)
    tokenizer.train_from_iterator(
        [word for line in CORPUS * 4 for word in line.replace(" ", " \0").split("\0")], trainer
    )
    rebuilt = Tokenizer(
        models.BPE(**_state(tokenizer), byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    )  # the byte pieces are no added tokens in real ones
    rebuilt.normalizer, rebuilt.decoder = tokenizer.normalizer, tokenizer.decoder
    rebuilt.add_special_tokens([AddedToken(name, normalized=False) for name in specials[:3]])
    rebuilt.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A $B", [("<s>", 1)])
    return rebuilt


def _state(tokenizer: Tokenizer) -> dict:
    import json

    model = json.loads(tokenizer.to_str())["model"]
    return {"vocab": model["vocab"], "merges": [tuple(pair) for pair in model["merges"]]}


_MAKERS = {
    "gpt2": lambda: _byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False)),
    "digits": lambda: _byte_level(_digits()),
    "cl100k": lambda: _byte_level(_split(CL100K), whole=True),
    "o200k": lambda: _byte_level(_split(O200K), whole=True, added=("<think>", "<table>")),
    "nfc": lambda: _byte_level(_split(CL100K), normalizer=normalizers.NFC(), added=("<tool>", "\n\n\n\n")),
    "right-digits": lambda: _byte_level(_split(RIGHT_DIGITS)),
    "marked": lambda: _marked(dummy=False),
    "marked-dummy": lambda: _marked(dummy=True),
}
NAMES = tuple(_MAKERS)


@lru_cache(None)
def tokenizer(name: str) -> Tokenizer:
    return _MAKERS[name]()


@lru_cache(None)
def vocabulary(name: str) -> Vocabulary:
    return Vocabulary.from_tokenizer(tokenizer(name))


def shared_root() -> Path:
    """The folder of data that lies beside the project; it may be absent."""
    return Path(os.environ.get("HEALFSA_SHARED", Path(__file__).parents[3] / "shared"))


def shared() -> list[Path]:
    """The folders of real tokenizers that lie beside the project; none where they are absent."""
    root = shared_root() / "tokenizers"
    return sorted(path for path in root.glob("*") if (path / "tokenizer.json").exists()) if root.is_dir() else []


_PIECES = (
    "don't", "we're", "I'LL", "'s", "\r\n", "\n\n\n", "    ", "  \n", "1234567", "://", "foo_bar", "n't", " 's", '","',
    "\n \n", "\t\n", "\u00a0", "...", "<|end|>", "<table>", "<think>", "e\u0301", "日本", "東京都", "🎉",
    "👨\u200d👩", "größer",
)  # fmt: skip
_SIGNS = (
    "aabcdestrvmlSTREVMLD''''    \n\n\r\t11239.,;:!?/-_()[]{}\"#=<>éöñßсЖя中文日本한\u0301\u00a0\u3000😀\u200d🏽\x01"
)


def odd_text(pick: random.Random, most: int = 30) -> str:
    """A text of awkward pieces."""
    parts = []
    for _ in range(pick.randrange(1, most)):
        part = pick.choice(_PIECES) if pick.random() < 0.2 else pick.choice(_SIGNS)
        parts.append(part * pick.randrange(1, 6) if pick.random() < 0.15 else part)
    return "".join(parts)


def plain_text(pick: random.Random) -> str:
    """A stretch of the corpus."""
    text = "".join(CORPUS)
    start = pick.randrange(len(text) - 20)
    return text[start : start + pick.randrange(10, 120)]


def cuts(pick: random.Random, count: int, *, inside: bool = True):
    """Yield (whole text, beginning of it), the beginning as text, or as bytes that may end inside a character."""
    while count > 0:
        text = odd_text(pick) if pick.random() < 0.6 else plain_text(pick)
        raw = text.encode()
        for _ in range(min(6, count)):
            count -= 1
            if inside and pick.random() < 0.3:
                yield text, raw[: pick.randrange(1, len(raw) + 1)]
            else:
                yield text, text[: pick.randrange(1, len(text) + 1)]
