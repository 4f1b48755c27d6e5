"""`python -m healfsa`: the command line."""

from healfsa.cli import main

if __name__ == "__main__":
    main()
