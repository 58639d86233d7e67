"""Python's operators on tensors: operands that are not known are asked to answer themselves, from the first call on."""

import subprocess
import sys

CODE = """
import operator, sys
import pullback as torch
class Other: pass
names = "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()
for name in names:
    setattr(Other, f"__r{name}__", lambda self, x: "answered")
for name in "lt le gt ge".split():
    setattr(Other, f"__{dict(lt='gt', le='ge', gt='lt', ge='le')[name]}__", lambda self, x: "answered")
x = torch.tensor([1, 2])
spelled = [f"{n}_" if n in ("and", "or") else n for n in names] + ["lt", "le", "gt", "ge"]
print({getattr(operator, n)(x, Other()) for n in spelled})
"""


def test_the_first_call_asks_the_other_operand_too():
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert result.stdout.strip() == "{'answered'}", result.stderr
