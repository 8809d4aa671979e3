"""Run ``python -m reticent.cli``."""

from reticent.cli._main import main

if __name__ == "__main__":
    main()
