"""A small random model over a real tokenizer, and a naive oracle of finite languages."""

from __future__ import annotations

from healfsa.integrations import models


def toy_model(vocab_size: int, seed: int = 0):
    """Return a random two-layer llama as wide as the tokenizer; milliseconds a step, and no weights to load."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocab_size, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        max_position_embeddings=512, initializer_range=0.4, bos_token_id=0, eos_token_id=[2, 0], pad_token_id=2,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def toy_tokenizer():
    return models.load_tokenizer(progress=False)


def spellers(vocabulary, whole: list[bytes]) -> dict[int, bytes]:
    """Return the tokens that occur anywhere in `whole`."""
    pieces = ((token_id, vocabulary.bytes_of(token_id)) for token_id in range(vocabulary.size))
    return {token_id: data for token_id, data in pieces if data and any(data in text for text in whole)}


def allowed(vocabulary, tokens: dict[int, bytes], whole: list[bytes], written: bytes) -> set[int]:
    """Return the ids that may follow `written` in a finite language of whole texts: the definition itself."""
    found = {t for t, data in tokens.items() if any(text.startswith(written + data) for text in whole)}
    return found | set(vocabulary.eos_ids) if written in whole else found


def greedy(
    model, vocabulary, ids: list[int], owed: bytes, texts: list[bytes], steps: int = 40, at_once: bool = False
) -> bytes:
    """Return what greedy decoding under `allowed` writes behind the owed bytes (`at_once`: one token writes them)."""
    import torch

    written, ids = b"", list(ids)
    whole = [owed + text for text in texts]
    tokens = spellers(vocabulary, whole)
    for _ in range(steps):
        may = sorted(allowed(vocabulary, tokens, whole, written))
        if at_once and not written:
            may = [t for t in may if (vocabulary.bytes_of(t) or b"").startswith(owed)]
        with torch.inference_mode():
            logits = model(torch.tensor([ids])).logits[0, -1]
        best = may[int(logits[may].argmax())]
        if best in vocabulary.eos_ids:
            break
        ids.append(best)
        written += vocabulary.bytes_of(best)
    return written[len(owed) :]
