"""A stand-in for llama-cpp-python: its functions over a tokenizer and a toy model."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import numpy as np


class FakeLlama:
    """What of `llama_cpp.Llama` is used, over a transformers model and tokenizer."""

    def __init__(self, model, tokenizer) -> None:
        import healfsa

        self._torch_model, self._tokenizer = model, tokenizer
        self.vocabulary = healfsa.Vocabulary.from_tokenizer(tokenizer)
        self.model = self
        self.model_path = "no such file"
        self.metadata = {"general.name": "fake", "tokenizer.chat_template": tokenizer.chat_template}
        self.prompts: list[list[int]] = []

    def n_vocab(self) -> int:
        return self.vocabulary.size

    def token_eos(self) -> int:
        return 2

    def tokenizer(self):
        return self

    def reset(self) -> None:
        pass

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        return self.vocabulary.encode(text.decode(), parse_special=special)

    def generate(self, tokens, logits_processor=None, temp=0.8, **options):
        import torch

        assert temp == 0 and set(options) <= {"repeat_penalty", "top_k"}
        self.prompts.append(list(tokens))
        ids = list(tokens)
        while True:
            with torch.inference_mode():
                scores = self._torch_model(torch.tensor([ids])).logits[0, -1].numpy()
            for each in logits_processor or ():
                scores = each(np.array(ids, dtype=np.intc), scores)
            ids.append(int(scores.argmax()))
            yield ids[-1]


def fake_module() -> ModuleType:
    """Return a module with the functions that are called; pieces need as much room as the real ones."""

    def piece(llama, token_id, buffer, size, lstrip, special):
        data = llama.vocabulary.bytes_of(token_id) or b""
        if len(data) > size:
            return -len(data)
        buffer[: len(data)] = data
        return len(data)

    module = ModuleType("llama_cpp")
    members = SimpleNamespace(
        llama_model_get_vocab=lambda model: model,
        llama_vocab_type=lambda vocab: 2,
        llama_vocab_get_attr=lambda vocab, i: 8 if i in vocab.vocabulary.specials.values() else 4,
        llama_vocab_is_eog=lambda vocab, i: i in (0, 2),
        llama_vocab_bos=lambda vocab: 1,
        llama_vocab_get_text=lambda vocab, i: vocab.vocabulary.name_of(i).encode(),
        llama_token_to_piece=piece,
        LogitsProcessorList=list,
    )
    module.__dict__.update(vars(members))
    return module
