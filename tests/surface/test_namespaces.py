"""The public namespaces that operators are exported to."""

import inspect

import pullback as torch


def test_all_names_of_a_namespace_are_listed():
    assert {"fft", "ifftshift", "rfftfreq"} <= set(torch.fft.__all__)
    assert {"solve", "norm"} <= set(torch.linalg.__all__) and "expit" in torch.special.__all__
    for module in (torch.fft, torch.linalg, torch.special):
        assert all(hasattr(module, name) and not name.startswith("_") for name in module.__all__)
        assert all(inspect.getdoc(getattr(module, name)) for name in module.__all__)
