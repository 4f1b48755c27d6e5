"""llama.cpp's server, unchanged: the prompt goes as ids without its tail, the tail begins a GBNF grammar."""

from __future__ import annotations

import healfsa

try:
    import xllamacpp  # runs llama.cpp's own server in this process
except ImportError as missing:
    print(f"{missing}: pip install xllamacpp")
    raise SystemExit(0) from None

from healfsa.integrations import embedded
from healfsa.integrations.llama_server import LlamaServer

params = xllamacpp.CommonParams()
params.model.path = str(embedded.find_gguf())
params.n_ctx, params.n_parallel, params.port = 1024, 1, 0
running = xllamacpp.Server(params)

client = LlamaServer(running.listening_address, healfsa.models.embedded_folder())
print("unhealed:", repr(client.generate("The capital of Fra", heal="off", max_new_tokens=8)))
print("healed:  ", repr(client.generate("The capital of Fra", max_new_tokens=8)))

schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
schema |= {"required": ["name", "age"], "additionalProperties": False}
prefill = '{"name": "B'
prompt = "Bob is 42 years old.\nJSON: " + prefill
print(prefill + client.generate(prompt, healfsa.json_schema(schema), prefill=prefill, max_new_tokens=24))
