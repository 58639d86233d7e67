"""The page: whole in itself, safe for any source text, and alive in a browser where there is one."""

import json
import re
import shutil
import subprocess

import pytest

import pullback as torch
from pullback.capture.front.explain import explain
from pullback.report import Account, page
from pullback.report.collect import FunctionRecord, GraphNode, GraphRecord
from pullback.report.kernels import Kernel

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def data_of(text: str) -> dict:
    return json.loads(re.search(r'<script id="account" type="application/json">(.*?)</script>', text, re.S)[1])


def large(count: int = 2000) -> Account:
    nodes = [GraphNode(f"n{i}", "call_function", "aten.add.Tensor", [f"n{i - 1}"] if i else [], "float32[2]", None) for i in range(count)]  # fmt: skip
    return Account([FunctionRecord("f", None, 0, [], [0])], [GraphRecord(0, "captured", "a graph", nodes, "f")])


def test_it_fetches_nothing():
    text = page(large(3))
    assert not re.search(r"""(src|href)\s*=|@import|url\(|fetch\(""", text)


def test_text_that_looks_like_markup_stays_text():
    account = large(1)
    account.functions[0].breaks.append(("</script><script>alert(1)</script>", None))
    text = page(account, "<b>title</b>")
    assert data_of(text)["functions"][0]["breaks"][0][0].startswith("</script>")
    assert "<b>" not in text and text.count("</script>") == 2


def test_explain_gives_the_page(tmp_path):
    def f(x):
        return x.sin() + 1

    file = tmp_path / "report.html"
    text = explain(f)(torch.ones(2)).html(file)
    assert file.read_text() == text and data_of(text)["graphs"][0]["nodes"]


def browsed(tmp_path, text: str, room: str) -> str:
    """What a browser makes of a page; nothing may appear on its console."""
    file = tmp_path / "report.html"
    file.write_text(text)
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync",
            "--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--dump-dom",
            f"{file.as_uri()}#{room}",
        ],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert "CONSOLE" not in done.stderr
    return done.stdout.partition("<main")[2].partition("</main>")[0]


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
@pytest.mark.parametrize(
    ("room", "shown"), [("Overview", "Functions"), ("Graphs", "n1999"), ("Guards", "f depends on")]
)
def test_a_browser_shows_it(tmp_path, room, shown):
    account = large()
    account.functions[0].guards.append("x is a tensor")
    assert shown in browsed(tmp_path, page(account), room)


@pytest.mark.skipif(BROWSER is None, reason="there is no browser")
def test_search_and_folding_work(tmp_path):
    account = large()
    account.graphs[0].kernels = [
        Kernel(f"loop {name}", f"text of {name}", [name], [], 1, 1, apart=["loop a: a reason"]) for name in ("a", "b")
    ]
    act = """<script>search.value = "n1998"; search.dispatchEvent(new Event("input"));</script></body>"""
    found = browsed(tmp_path, page(account).replace("</body>", act), "Graphs")
    table = found.partition("Nodes</h3>")[2]
    assert "n1998" in table and "n1996<" not in table and 'class="node found"' in found
    act = """<script>document.querySelectorAll("details")[1].querySelector("summary").click();</script></body>"""
    rendered = browsed(tmp_path, page(account).replace("</body>", act), "Kernels")
    first, second = rendered.split("<details")[1:]
    assert not first.startswith(" open") and second.startswith(" open") and "a reason" in second
