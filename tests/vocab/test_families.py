"""Every family of tokenizers: recognised, exact, and described well enough to encode by its description alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from vocab.builders import (
    byte_level,
    merged,
    sentencepiece_model,
    sentencepiece_style,
    tiktoken_encoding,
    unigram,
)
from vocab.samples import varied

from healfsa.errors import MissingExtra, VocabularyError
from healfsa.vocab import SPECIAL, Vocabulary

SAMPLE = varied(250)


def processor(kind: str = "bpe", user: tuple[str, ...] = ()):
    sentencepiece = pytest.importorskip("sentencepiece")
    return sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(kind, user=user))


def bundled(pattern: str) -> Path:
    """Return a tokenizer file that comes with mistral-common."""
    package = pytest.importorskip("mistral_common")
    return sorted((Path(package.__file__).parent / "data").glob(pattern))[-1]


@pytest.fixture(scope="module")
def tekken():
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    return Tekkenizer.from_file(bundled("tekken_240911.json"))


def same_bytes(vocabulary: Vocabulary, sample: list[str] = SAMPLE) -> None:
    """Check that the tokens of every text spell its normalised text."""
    for text in sample:
        ids = vocabulary.encode(text)
        assert vocabulary.decode_bytes(ids) == vocabulary.normalize(text).encode(), text
        assert not any(vocabulary.kinds[token_id] == SPECIAL for token_id in ids), text


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (byte_level, "bpe-bytelevel"),
        (sentencepiece_style, "bpe-sentencepiece"),
        (lambda: sentencepiece_style(prefix="metaspace"), "bpe-sentencepiece"),
        (lambda: sentencepiece_style(prefix="none"), "bpe-sentencepiece"),
        (unigram, "unigram"),
        (tiktoken_encoding, "tiktoken"),
        (processor, "bpe-sentencepiece"),
        (lambda: processor("unigram"), "unigram"),
    ],
)
def test_tokens_spell_the_normalised_text(build, kind):
    vocabulary = Vocabulary.from_tokenizer(build())
    assert vocabulary.tokenizer.kind == kind
    assert len(vocabulary.spellable) == 256
    same_bytes(vocabulary)


@pytest.mark.parametrize(
    "build",
    [
        byte_level,
        sentencepiece_style,
        lambda: sentencepiece_style(prefix="metaspace"),
        tiktoken_encoding,
        processor,
    ],
)
def test_the_rules_alone_give_the_same_ids(build):
    vocabulary = Vocabulary.from_tokenizer(build())
    for text in SAMPLE:
        if not any(name in text for name in vocabulary.specials):
            assert merged(vocabulary, text) == vocabulary.encode(text), text


def test_the_pre_tokenizer_sees_marks_where_the_normaliser_writes_them():
    tokenizer = sentencepiece_style(prefix="none")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary.tokenizer.pre_tokenize("a  the") == [(0, 6)]
    assert merged(vocabulary, "a  the") == vocabulary.encode("a  the")


def test_unigram_models_have_scores_and_no_merges():
    for build in (unigram, lambda: processor("unigram")):
        adapter = Vocabulary.from_tokenizer(build()).tokenizer
        assert adapter.merges() is None and adapter.symbols("a") is None
        assert adapter.scores().dtype == np.float64 and (adapter.scores() <= 0).all()
    assert Vocabulary.from_tokenizer(byte_level()).tokenizer.scores() is None


def test_tekken(tekken):
    vocabulary = Vocabulary.from_tokenizer(tekken)
    assert vocabulary.size == 131072 and vocabulary.eos_ids == (2,) and vocabulary.bos_id == 1
    same_bytes(vocabulary)
    assert vocabulary.encode("[INST]a</s>", parse_special=True) == [3, *vocabulary.encode("a"), 2]
    assert vocabulary.encode("größer", add_special_tokens=True) == tekken.encode("größer", bos=True, eos=False)
    assert vocabulary.bytes_of(1000 + 65) == b"A"


def test_tekken_by_its_file(tekken):
    by_file = Vocabulary.from_tokenizer(bundled("tekken_240911.json"), cache=False)
    assert by_file.fingerprint == Vocabulary.from_tokenizer(tekken).fingerprint


def test_a_tekken_file_under_another_name(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_bytes(bundled("tekken_240718.json").read_bytes())
    assert Vocabulary.from_tokenizer(path, cache=False).tokenizer.kind == "tiktoken"


def test_mistral_sentencepiece():
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    path = bundled("mistral_instruct_tokenizer_240323.model.v3")
    whole = MistralTokenizer.from_file(str(path))
    vocabulary = Vocabulary.from_tokenizer(whole)
    assert vocabulary.size == 32768 and vocabulary.specials["[INST]"] == 3 and vocabulary.eos_ids == (2,)
    same_bytes(vocabulary)
    inner = whole.instruct_tokenizer.tokenizer
    for text in SAMPLE[:50]:
        assert vocabulary.encode(text, add_special_tokens=True) == inner.encode(text, bos=True, eos=False)
    assert vocabulary.encode("[INST] a", parse_special=True)[0] == 3
    assert vocabulary.decode_bytes(vocabulary.tokenizer.encode_continuation(" a")) == b" a"
    by_file = Vocabulary.from_tokenizer(path, cache=False)
    assert by_file.fingerprint == vocabulary.fingerprint
    words = [text for text in SAMPLE[:100] if len(text) < 60]
    assert all(merged(vocabulary, text) == vocabulary.encode(text) for text in words), "merges go by score, not by id"


def test_user_defined_pieces_are_added_text():
    vocabulary = Vocabulary.from_tokenizer(processor(user=("<think>",)))
    think = vocabulary.added_text["<think>"]
    assert vocabulary.bytes_of(think) == b"<think>" and think in vocabulary.encode("a<think>b")
    assert [token.content for token in vocabulary.tokenizer.added_tokens] == ["<think>"]
    assert "[INST]" in vocabulary.specials and vocabulary.bytes_of(vocabulary.specials["[INST]"]) is None


def test_tiktoken_specials_and_bytes():
    encoding = tiktoken_encoding()
    vocabulary = Vocabulary.from_tokenizer(encoding)
    end = encoding._special_tokens["<|endoftext|>"]
    assert vocabulary.eos_ids == (end,) and vocabulary.kinds[end] == SPECIAL and vocabulary.size == encoding.n_vocab
    assert vocabulary.encode("a<|endoftext|>", parse_special=True)[-1] == end
    assert end not in vocabulary.encode("a<|endoftext|>")
    assert vocabulary.tokenizer.pre_tokenize("don't 12345") == [(0, 3), (3, 5), (5, 6), (6, 9), (9, 11)]


def test_tiktoken_without_all_bytes():
    vocabulary = Vocabulary.from_tokenizer(tiktoken_encoding(missing=b"\x07q"))
    assert vocabulary.encode("abc")
    with pytest.raises(VocabularyError, match=r"no token is the byte 0x71 \(offset 1\)"):
        vocabulary.encode("aq")


def test_transformers_fast():
    transformers = pytest.importorskip("transformers")
    backend = byte_level(specials=("<|end|>", "<pad>"))
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>", pad_token="<pad>")
    vocabulary = Vocabulary.from_tokenizer(wrapped, vocab_size=len(wrapped) + 3)
    assert vocabulary.eos_ids == (0,) and vocabulary.size == len(wrapped) + 3
    wrapped(["a", "foo bar"], padding=True, truncation=True, max_length=3)
    assert vocabulary.encode("foo bar foobar") == wrapped.encode("foo bar foobar", add_special_tokens=False)


def test_transformers_written_in_python():
    transformers = pytest.importorskip("transformers")
    from healfsa.vocab.spelling import byte_alphabet

    class Bytes(transformers.PreTrainedTokenizer):
        byte_decoder = {chr(code): byte for byte, code in enumerate(byte_alphabet())}

        def get_vocab(self):
            return self.byte_decoder | self.added_tokens_encoder

        @property
        def vocab_size(self):
            return 256

        def _tokenize(self, text):
            return [chr(byte_alphabet()[byte]) for byte in text.encode()]

        def _convert_token_to_id(self, token):
            return self.byte_decoder[token]

        def _convert_id_to_token(self, index):
            return chr(byte_alphabet()[index])

    tokenizer = Bytes(eos_token=AddedToken("<end>", special=True))
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary.eos_ids == (256,) and vocabulary.tokenizer.kind == "slow"
    assert vocabulary.decode_bytes(vocabulary.encode("größer <end>")) == "größer <end>".encode()

    class Opaque:
        backend_tokenizer = None

    with pytest.raises(VocabularyError, match="bytes of the tokens of a Opaque cannot be known"):
        Vocabulary.from_tokenizer(Opaque())


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: 7, "a int is no tokenizer"),
        (lambda: models.BPE(), "only a part of a tokenizer"),
        (lambda: Tokenizer(models.BPE()), "has no text token"),
        (
            lambda: Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]")),
            "WordPiece model does not spell",
        ),
        (
            lambda: Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]")),
            "WordLevel model does not spell",
        ),
        (
            lambda: Tokenizer(models.BPE(vocab={"a": 0}, merges=[], end_of_word_suffix="</w>")),
            "marks words with '</w>'",
        ),
        (lambda: Tokenizer(models.BPE(vocab={"a": 0}, merges=[], dropout=0.5)), "dropout"),
        (lambda: custom_part(), "written in Python"),
        (lambda: processor_without_model(), "without a model"),
    ],
)
def test_what_cannot_be_read_is_refused(build, message):
    with pytest.raises(VocabularyError, match=message) as caught:
        Vocabulary.from_tokenizer(build())
    assert caught.value.hint


def custom_part() -> Tokenizer:
    class Upper:
        def normalize(self, text):
            text.uppercase()

    from tokenizers import normalizers

    tokenizer = byte_level()
    tokenizer.normalizer = normalizers.Normalizer.custom(Upper())
    return tokenizer


def processor_without_model():
    return pytest.importorskip("sentencepiece").SentencePieceProcessor()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("tokenizer.json", b"{", "cannot be read as a tokenizer"),
        ("tokenizer.json", b'{"version": "1.0"}', "cannot be read as a tokenizer"),
        ("tokenizer.json", b"", "no tokenizer that is known"),
        ("tekken.json", b'{"config": {}}', "cannot be read as a tokenizer"),
        ("tokenizer.model", b"\n\x03abc", "cannot be read as a tokenizer"),
        ("tokenizer.model", b"IQ== 0\nIg== 1\n", "a tiktoken file"),
        ("tokenizer.bin", b"\x00\x01\x02", "no tokenizer that is known"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(VocabularyError, match=message) as caught:
        Vocabulary.from_tokenizer(path)
    assert caught.value.hint and str(path) in str(caught.value)


def test_paths_without_a_tokenizer(tmp_path):
    with pytest.raises(VocabularyError, match="holds no tokenizer"):
        Vocabulary.from_tokenizer(tmp_path)
    with pytest.raises(VocabularyError, match="no tokenizer at 'gpt2'") as caught:
        Vocabulary.from_tokenizer("gpt2")
    assert "from_pretrained" in caught.value.hint


def test_a_file_whose_package_is_missing(tmp_path, monkeypatch):
    path = tmp_path / "tokenizer.model"
    path.write_bytes(sentencepiece_model())
    monkeypatch.setitem(__import__("sys").modules, "sentencepiece", None)
    with pytest.raises(MissingExtra, match="sentencepiece") as caught:
        Vocabulary.from_tokenizer(path, cache=False)
    assert caught.value.extra == "tokenizers"


def test_a_file_that_changed_in_between(tmp_path):
    path = tmp_path / "tokenizer.json"
    byte_level().save(str(path))
    from healfsa.vocab.files import from_path

    source = from_path(str(path))
    byte_level(specials=("<other>",)).save(str(path))
    with pytest.raises(VocabularyError, match="has changed"):
        _ = source.adapter


def test_bad_widths():
    for width in (0, -5):
        with pytest.raises(VocabularyError, match=f"vocab_size .*not {width}"):
            Vocabulary.from_tokenizer(byte_level(), vocab_size=width)
    with pytest.raises(VocabularyError, match="no id below 1 is text"):
        Vocabulary.from_tokenizer(byte_level(), vocab_size=1)


@pytest.mark.parametrize(
    ("scheme", "normalized"),
    [("prepend", False), *((scheme, flag) for scheme in ("first", "always", "byte-level") for flag in (True, False))],
)
def test_added_text_and_dummy_prefixes(scheme, normalized):
    """A prefix may come anew behind every added token; whatever the package does there is what is said."""
    if scheme == "byte-level":
        tokenizer = byte_level()
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    else:
        tokenizer = sentencepiece_style(prefix="normalizer" if scheme == "prepend" else "metaspace")
    if scheme == "always":
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    tokenizer.add_tokens([AddedToken("<tool>", normalized=normalized), AddedToken("<to", normalized=normalized)])
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    for text in ("a<tool>the", "<tool>", "<tool><to<tool> a", "a <tool> <tool>b", "", " ", "a", "x<to the"):
        assert vocabulary.decode_bytes(vocabulary.encode(text)) == vocabulary.normalize(text).encode(), text


def test_an_added_token_that_swallows_a_space():
    """Looked for in the normalised text, it is found with the mark in front: a byte is lost, and that is said."""
    tokenizer = sentencepiece_style()
    tokenizer.add_tokens([AddedToken("<tool>", normalized=True)])
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary.decode_bytes(vocabulary.encode("a <tool>")) == b" a<tool>"
    assert vocabulary.unencodable("a <tool>") == 2


def test_how_a_vocabulary_shows_itself():
    assert repr(Vocabulary.from_tokenizer(toy())) == "Vocabulary(tokenizers.Tokenizer: 3 ids, 2 text, 1 special)"


def toy() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    tokenizer.add_special_tokens(["<s>"])
    return tokenizer


def test_a_pre_tokenizer_that_loses_white_space_is_shown_by_normalize():
    tokenizer = byte_level()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary.normalize("a  größer\n") == "agrößer"
    assert vocabulary.decode_bytes(vocabulary.encode("a  größer\n")) == "agrößer".encode()
