"""Entry point of `companion` and of `python -m companion`."""

import sys

from companion import missing_library
from companion.io import signals, startup, streams


def main() -> None:
    """Run the command line; after a signal or without a library that it needs, print a message and exit."""
    streams.prepare()
    startup.skip_grammar_of_addresses()
    try:
        signals.listen()
        try:
            from companion.cli import app
        except ModuleNotFoundError as error:
            sys.exit(missing_library(error.name, "The command line", "site"))
        app()
    except KeyboardInterrupt as stopped:
        print(signals.SENTENCE, file=sys.stderr)
        sys.exit(signals.exit_code(stopped))


if __name__ == "__main__":
    main()
