"""The server: OpenAI's routes over models in this process or over another server, with healing and grammars.

In: models, settings. Out: an ASGI application (`create_app`), or a running server (`healfsa serve`).
Not here: forward passes (healfsa.integrations), the command line (healfsa.cli).
"""

from healfsa.server.app import create_app
from healfsa.server.catalogue import Catalogue, Served, serve_model
from healfsa.server.metrics import Metrics
from healfsa.server.settings import Settings

__all__ = ["Catalogue", "Metrics", "Served", "Settings", "create_app", "serve_model"]
