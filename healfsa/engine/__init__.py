"""What changes per request, and what requests share: `Engine`, `Matcher`, `Batch`, bitmasks.

In: grammars, prompts, token ids. Out: bitmasks. Not here: any framework (integrations).
"""

from healfsa.engine.batch import Batch
from healfsa.engine.bitmask import allocate_bitmask
from healfsa.engine.engine import Engine
from healfsa.engine.matcher import Matcher

__all__ = ["Batch", "Engine", "Matcher", "allocate_bitmask"]
