"""Make docs/reference/dossier.schema.json from the types of the dossier. `make docs` runs this; a test compares."""

import json
from pathlib import Path

from reticent.report import dossier_schema

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "dossier.schema.json"


def main() -> None:
    """Write the schema."""
    text = json.dumps(dossier_schema(), indent=2, ensure_ascii=False) + "\n"
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
