"""What the compiler did with a program, as one page: `pullback explain --html`.

`collect` listens to the compiler (`core.events`) and keeps records; `kernels` adds what each kernel moves, computes and takes;
`page` prints it all as one HTML file that needs nothing else.
"""

from __future__ import annotations

from .collect import Account, collecting
from .page import page

__all__ = ["Account", "collecting", "page"]
