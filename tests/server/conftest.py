"""A tiny random model with a tokenizer of its own behind the whole server."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette")
pytest.importorskip("torch")
pytest.importorskip("prometheus_client")


@pytest.fixture(scope="session")
def tiny():
    """(model, tokenizer)."""
    from server_toy import toy

    return toy()


@pytest.fixture(scope="session")
def server(tiny):
    """The application in a thread, on a loopback port; `.url`, `.served`, `.client` (httpx)."""
    from server_toy import RunningServer

    with RunningServer(*tiny) as running:
        yield running
