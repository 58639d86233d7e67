"""An account as one HTML file: text, style and script inside it, nothing fetched.

In: an `Account`. Out: the text of the page. The data goes in as JSON; `page.js` draws from it what is looked at, when it is
looked at, so that large graphs cost nothing until they are opened.
"""

from __future__ import annotations

import html
import json
import linecache
from pathlib import Path

from .collect import Account

HERE = Path(__file__).parent
TEMPLATE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<header><h1>{title}</h1><input id="search" type="search" placeholder="Search nodes, kernels, lines, guards" aria-label="Search"></header>
<nav id="rooms" aria-label="Parts of the report"></nav>
<main id="room"></main>
<script id="account" type="application/json">{data}</script>
<script>
{script}
</script>
</body>
</html>
"""


def page(account: Account, title: str = "What the compiler did") -> str:
    """The page, as text."""
    data = account.as_data()
    data["files"] = {file: _lines(file) for file in _files(account)}
    return TEMPLATE.format(
        title=html.escape(title),
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=(HERE / "builders.js").read_text(encoding="utf-8") + (HERE / "page.js").read_text(encoding="utf-8"),
        data=json.dumps(data, default=str).replace("</", "<\\/"),
    )


def _files(account: Account) -> list[str]:
    """The files that something in the account is of, those of compiled functions first."""
    named = [f.file for f in account.functions if f.file]
    named += [n.line[0] for g in account.graphs for n in g.nodes if n.line]
    return list(dict.fromkeys(named))


def _lines(file: str) -> list[str]:
    return [line.rstrip("\n") for line in linecache.getlines(file)]
