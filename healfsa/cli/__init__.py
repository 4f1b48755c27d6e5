"""The command line `healfsa`.

In: arguments. Out: text on standard output; errors without tracebacks on standard error, and exit codes
    that say what was wrong.
Idea: nothing heavy is imported before a command needs it.
"""


def main() -> None:
    """Run the command line; entry point of the script `healfsa`."""
    from healfsa.cli.app import app

    app(prog_name="healfsa")
