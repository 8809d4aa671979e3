"""Open a page in headless Chromium, run a script in it, and return what the script found."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("RETICENT_NEEDS_CHROMIUM"),
    reason="Chromium is not installed (apt-get install chromium)",
)

# Every error, and every request for something outside the page, is kept.
_WATCH = """<script>
window.seen = [];
addEventListener("error", e => seen.push(String(e.message || e.target.src || e.target.href)), true);
for (const kind of ["error", "warn"]) { console[kind] = (...words) => seen.push(words.join(" ")); }
</script>"""

# What the page inside the frame found is copied out of it, since only the outer page is printed.
_FRAME = """<!doctype html><html><head></head><body style="margin:0">
<iframe id="inner" style="border:0;width:{width}px;height:900px" srcdoc="{page}"></iframe>
<script>addEventListener("load", () => {{
  const inner = document.getElementById("inner");
  const box = document.createElement("pre");
  box.id = "found"; box.textContent = inner.contentDocument.getElementById("found").textContent;
  inner.remove(); document.body.append(box);
}});</script></body></html>"""


def browse(
    page: Path,
    script: str,
    folder: Path,
    *,
    width: int = 1000,
    frame: int | None = None,
    flags: tuple[str, ...] = (),
):
    """Return the JSON value that ``script`` (a function body) returns inside the page.

    Windows narrower than 500 pixels are refused by headless Chromium: ``frame`` shows the page in a frame
    of that width, for which styles and layout are those of such a screen.
    """
    text = page.read_text(encoding="utf-8").replace("<head>", "<head>" + _WATCH, 1)
    run = f"""<script>
    const found = (() => {{ {script} }})();
    const box = document.createElement("pre");
    box.id = "found"; box.textContent = JSON.stringify({{found, seen}});
    document.body.append(box);
    </script>"""
    watched = folder / "watched.html"
    text = text.replace("</body>", run + "</body>")
    if frame is not None:
        text = _FRAME.format(width=frame, page=html.escape(text))
    watched.write_text(text, encoding="utf-8")
    out = chromium(
        folder, f"--window-size={width},900", "--dump-dom", *flags, watched.as_uri()
    )
    match = re.search(r'<pre id="found">(.*?)</pre>', out, re.DOTALL)
    assert match, f"the script did not run: {out[:500]}"
    return json.loads(html.unescape(match.group(1)))


def chromium(folder: Path, *flags: str) -> str:
    assert CHROMIUM, "Chromium is required here"
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--hide-scrollbars", f"--user-data-dir={folder / 'profile'}", *flags,
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout
