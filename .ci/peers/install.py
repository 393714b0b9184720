"""Installs the servers by their ordinary package clients, each part once."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Callable

# What is installed where. A change here installs that part again.
NODE_PACKAGES = [
    "node@22",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
    "@modelcontextprotocol/sdk@1.32.2",
]
TYPESCRIPT_PACKAGES = [
    "@modelcontextprotocol/server@2.4.0",
    "@modelcontextprotocol/node@2.1.2",
    "zod@4.6.7",
]
# With a node of its own: it needs a newer one than the machine may have.
INSPECTOR_PACKAGES = ["node@22", "@modelcontextprotocol/inspector@2.12.0"]
PYTHON_PACKAGES = [
    "mcp-server-time==2026.10.19",
    "mcp-server-git==2026.10.19",
    "mcp-server-fetch==2026.10.24",
    "fastmcp==4.1.2",
    "websockets==17.4",
]
# The oldest protocol revision in use. It is silent on `server/discover` and cannot go on after it.
OLD_PYTHON_PACKAGES = ["mcp==1.3.0", "pydantic<2.11", "mcp-server-sqlite==2025.1.14"]
# The only one that does not know `initialize`.
RUST_PACKAGES = ["modelcontextprotocol@0.2.4"]
# Installed only on request: 300 MB, and a peer that no test of the servers needs. mcporter comes with a
# node of its own, because it needs a newer one than the machine may have.
EXTRA_PACKAGES = {
    "toolbox": ["@toolbox-sdk/server@1.12.0"],
    "mcporter": ["node@24", "mcporter@0.12.3"],
}


def install_all(cache: Path, extra: list[str]) -> None:
    """Installs every server below `cache`, and of the extra packages those that are named."""
    parts: list[tuple[str, list[str], Callable[[Path, list[str]], None]]] = [
        ("node", NODE_PACKAGES, by_npm),
        ("typescript", TYPESCRIPT_PACKAGES, by_npm),
        ("inspector", INSPECTOR_PACKAGES, by_npm),
        ("python", PYTHON_PACKAGES, by_pip),
        ("python-old", OLD_PYTHON_PACKAGES, by_pip),
        ("rust", RUST_PACKAGES, by_cargo),
    ]
    parts += [(name, packages, by_npm) for name, packages in EXTRA_PACKAGES.items() if name in extra]
    for name, packages, install in parts:
        place = cache / name
        stamp = place / "installed"
        wanted = hashlib.sha256("\n".join(packages).encode()).hexdigest()
        if stamp.is_file() and stamp.read_text() == wanted:
            continue
        print(f"installing {', '.join(packages)}", flush=True)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        install(place, packages)
        stamp.write_text(wanted)


def by_npm(place: Path, packages: list[str]) -> None:
    run("npm", "i", "--prefix", place, "--no-audit", "--no-fund", "--loglevel=error", *packages)


def by_pip(place: Path, packages: list[str]) -> None:
    run(sys.executable, "-m", "venv", place)
    run(place / "bin/pip", "install", "-q", "--disable-pip-version-check", *packages)


def by_cargo(place: Path, packages: list[str]) -> None:
    # Its manifest asks for a newer compiler than it needs. A build without optimisation is done in
    # a third of the time and starts in ten milliseconds all the same.
    words = ["install", "--debug", "--locked", "--ignore-rust-version", "-q", "--root", place]
    with tempfile.TemporaryDirectory(prefix="toolhost-interop-build-") as target:
        lean = {"CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_TARGET_DIR": target}
        run("cargo", *words, *packages, environment=lean)


def run(*command: str | Path, environment: dict[str, str] | None = None) -> None:
    subprocess.run(
        [str(word) for word in command],
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=900,
        env={**os.environ, **(environment or {})},
    )
