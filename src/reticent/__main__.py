"""Run ``python -m reticent``."""

from reticent.cli._main import main, without_current_folder

if __name__ == "__main__":
    without_current_folder()
    main()
