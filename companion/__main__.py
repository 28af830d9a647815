"""`python -m companion`: the command line, also without an installed script."""

from companion.cli import main

if __name__ == "__main__":
    main()
