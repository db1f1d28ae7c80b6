"""Chromium without a window, as the tests of pages start it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def dump_dom(url: str, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The document behind the url once its scripts ran, on standard output."""
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--allow-file-access-from-files",
        "--window-size=1400,900",
        f"--user-data-dir={profile}",
        *options,
        "--dump-dom",
        url,
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
