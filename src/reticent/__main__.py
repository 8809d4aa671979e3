"""Run ``python -m reticent``."""

from reticent.cli._main import main

if __name__ == "__main__":
    main()
