"""Ready grammars and tool calls, from data files.

In: the name of a grammar, or tools and the name of a tool style. Out: a `Grammar`, or `ToolCalls`.
Not here: how grammars are made (see healfsa.grammar).
"""

from healfsa.library.calls import ToolCalls, tool_calls
from healfsa.library.events import Arguments, Call, CallBegin, CallEnd, Content, Parsed, Reasoning
from healfsa.library.parser import Parser
from healfsa.library.ready import Entry, Failure, check, check_file, entries, entry, get
from healfsa.library.recognise import Recognised, recognise
from healfsa.library.styles import ToolStyle, get_style, style_names
from healfsa.library.toolspecs import Tool, read_tools

__all__ = [
    "Arguments",
    "Call",
    "CallBegin",
    "CallEnd",
    "Content",
    "Entry",
    "Failure",
    "Parsed",
    "Parser",
    "Reasoning",
    "Recognised",
    "Tool",
    "ToolCalls",
    "ToolStyle",
    "check",
    "check_file",
    "entries",
    "entry",
    "get",
    "get_style",
    "read_tools",
    "recognise",
    "style_names",
    "tool_calls",
]
