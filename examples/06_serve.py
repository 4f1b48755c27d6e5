"""The server and two clients: a prompt cut inside a word, streamed; a begun JSON object, continued.

`pip install 'healfsa[serve,transformers]'`, then `python examples/06_serve.py`. The same server: `healfsa serve`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

PORT = 8765
URL = f"http://127.0.0.1:{PORT}"
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def wait(http) -> None:
    """Wait until the server answers."""
    for _ in range(600):
        try:
            http.get("/healthz")
            return
        except Exception:
            time.sleep(0.2)
    raise SystemExit("the server did not start")


def streamed(http, prompt: str, heal: str) -> str:
    """Return what a stream adds to a prompt."""
    body = {"prompt": prompt, "heal": heal, "max_tokens": 8, "temperature": 0, "stream": True}
    text = ""
    with http.stream("POST", "/v1/completions", json=body) as response:
        for line in response.iter_lines():
            if line.startswith("data: {"):
                text += json.loads(line[6:])["choices"][0]["text"]
    return text


def continued(http, begun: str) -> str:
    """Return a chat's answer behind its beginning, by a schema."""
    messages = [{"role": "user", "content": "Invent a person."}, {"role": "assistant", "content": begun}]
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
    body = {"messages": messages, "response_format": form, "max_tokens": 60, "temperature": 0}
    return http.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]


def main() -> None:
    """Start the server, ask it, end it."""
    try:
        import httpx
        import starlette  # noqa: F401
    except ImportError:
        raise SystemExit("this example needs the extra: pip install 'healfsa[serve]'") from None
    command = [sys.executable, "-m", "healfsa", "serve", "--port", str(PORT)]
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=URL, timeout=120, trust_env=False) as http:
            wait(http)
            for heal in ("off", "exact"):
                print(f"heal={heal:6}", "The capital of Fra|" + streamed(http, "The capital of Fra", heal))
            begun = '{"name": "B'
            whole = begun + continued(http, begun)
            print("continued  ", whole, json.loads(whole))
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
