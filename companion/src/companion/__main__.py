"""Entry point of `companion` and of `python -m companion`."""

import sys

from companion.io import signals, startup


def main() -> None:
    """Run the command line; after a signal or without a library that it needs, print a message and exit."""
    # for a terminal that is not UTF-8
    sys.stdout.reconfigure(errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue]
    startup.skip_unused_formats()
    try:
        signals.listen()
        try:
            from companion.cli import app
        except ModuleNotFoundError as error:
            sys.exit(
                f"The command line needs {error.name}, which is not installed. `paper-companion[site]` installs it."
            )
        app()
    except KeyboardInterrupt as stopped:
        print(signals.SENTENCE, file=sys.stderr)
        sys.exit(signals.exit_code(stopped))


if __name__ == "__main__":
    main()
