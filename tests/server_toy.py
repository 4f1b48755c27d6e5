"""What the server's tests share: a tiny random model, its tokenizer, and the server in a thread."""

from __future__ import annotations

import threading
import time
from functools import lru_cache

SPECIALS = ["<|end|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
TEXT = [
    'The company hired an intermediate developer: {"name": "Bob", "age": 42, "tags": ["x", "y"]}',
    "def f(x):\n    return x * 2 + 10  # größer als null\n",
    "https://example.org/path?query=1&other=2024-12-31 naïve café 東京 🎉 été",
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call> France Paris Berlin',
    "aaaa aaab abab abba foo bar foobar 0123456789 00 11 3.14e-10 true false null",
]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@lru_cache(None)
def toy_tokenizer():
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=SPECIALS,
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT * 4, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", chat_template=TEMPLATE)


def toy_model(size: int, seed: int = 0):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=size, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=2048, initializer_range=0.4, bos_token_id=0, eos_token_id=[0, 2],
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def toy():
    tokenizer = toy_tokenizer()
    return toy_model(len(tokenizer) + 9), tokenizer


class RunningServer:
    """The whole server on a loopback port, in a thread of this process."""

    def __init__(self, model, tokenizer, settings=None, name="tiny", app=None):
        import uvicorn

        from healfsa.server import Metrics, Settings, create_app, serve_model

        self.settings = settings or Settings()
        metrics = Metrics()
        if app is None:
            self.served = serve_model(name, model, tokenizer, self.settings, metrics)
            app = create_app([self.served], self.settings, metrics)
        self.app = app
        config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", timeout_graceful_shutdown=5)
        self.uvicorn = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.uvicorn.run, daemon=True)

    def __enter__(self):
        import httpx

        self.thread.start()
        until = time.monotonic() + 30
        while not self.uvicorn.started and time.monotonic() < until:
            time.sleep(0.01)
        port = self.uvicorn.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.client = httpx.Client(base_url=self.url, timeout=60, trust_env=False)
        return self

    def __exit__(self, *_):
        self.client.close()
        self.uvicorn.should_exit = True
        self.thread.join(20)

    def post(self, path, **body):
        return self.client.post(path, json=body)

    def stream(self, path, **body):
        """Return the JSON values of a stream's events, and whether it ended with [DONE]."""
        import json

        values, done = [], False
        with self.client.stream("POST", path, json=body | {"stream": True}) as response:
            assert response.status_code == 200, response.read()
            for line in response.iter_lines():
                if line == "data: [DONE]":
                    done = True
                elif line.startswith("data: "):
                    values.append(json.loads(line[6:]))
        return values, done
