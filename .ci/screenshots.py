"""Pictures of the report, the flame graph and the documentation, rendered by headless Chromium into docs/images.

    python .ci/screenshots.py            render them anew
    python .ci/screenshots.py --check    render them into a temporary folder: pages load, nothing is on their consoles, and no
                                         picture is blank; without a browser this says so and passes

The site must have been built: --site FOLDER names it (mkdocs build --site-dir FOLDER); without it, only the reports are rendered.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync",
    "--disable-component-update", "--hide-scrollbars", "--enable-logging=stderr",
)  # fmt: skip
PROGRAM = """\
import torch
from torch import nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(64, 256), nn.Linear(256, 64)
        self.norm = nn.LayerNorm(64)

    def forward(self, x):
        h = F.gelu(self.up(self.norm(x)))
        return x + self.down(h)


def train_step(net, optimizer, x, y):
    optimizer.zero_grad()
    out = net(x)
    loss = F.mse_loss(out, y)
    loss.backward()
    if loss.item() > 10:
        print("the loss is large")
    optimizer.step()
    return loss


torch.manual_seed(0)
net = Net()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
x, y = torch.randn(32, 64), torch.randn(32, 64)
for step in range(400):
    train_step(net, optimizer, x, y)
"""
WIDTH, SITE_WIDTH = 1000, 1280


def reports(folder: Path) -> dict[str, tuple[str, int]]:
    """Pages of a run of the program: name of a picture -> (address, height)."""
    script = folder / "train.py"
    script.write_text(PROGRAM, encoding="utf-8")
    for command in (["explain", "--html", "report.html"], ["profile", "--html", "flame.html"]):
        subprocess.run(
            [sys.executable, "-m", "pullback", *command, script.name], cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
    report = (folder / "report.html").as_uri()
    return {
        "explain-source": (f"{report}#Source", 620),
        "explain-kernels": (f"{report}#Kernels", 560),
        "profile-flame": ((folder / "flame.html").as_uri() + "#Flame", 360),
    }


def rendered(address: str, target: Path, height: int, profile: Path) -> None:
    """One picture. A message on the console of the page is an error."""
    width = SITE_WIDTH if target.stem.startswith("docs") else WIDTH
    done = subprocess.run(
        [BROWSER or "", *QUIET, f"--user-data-dir={profile}", f"--window-size={width},{height}", f"--screenshot={target}", address],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    if said or not target.exists():
        raise SystemExit(f"{address}: " + ("\n".join(said) or f"no picture: {done.stderr[-500:]}"))
    if target.stat().st_size < 5000:  # one colour compresses to less
        raise SystemExit(f"{address}: the picture is blank")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--site", type=Path)
    options = parser.parse_args()
    if BROWSER is None:
        print("no browser is installed: nothing was rendered")
        return 0 if options.check else 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pages = reports(folder)
        if options.site is not None:
            site = options.site.resolve()
            pages["docs-home"] = ((site / "index.html").as_uri(), 560)
            pages["docs-reference"] = ((site / "reference" / "linalg.html").as_uri(), 640)
        target = folder if options.check else ROOT / "docs" / "images"
        for picture, (address, height) in pages.items():
            rendered(address, target / f"{picture}.png", height, folder / "profile")
            print(f"{picture}.png: {(target / f'{picture}.png').stat().st_size / 1024:.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
