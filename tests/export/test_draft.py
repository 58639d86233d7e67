"""`draft_export`: programs for their example, and reports of what was assumed; export that runs on the example too."""

import pytest

import pullback as torch
from pullback.capture.fake.errors import MetadataMismatchError
from pullback.export.draft import FailureType
from pullback.joint.config import config


class Picks(torch.nn.Module):
    def forward(self, x, n):
        k = n.item()
        return x[:k] + 1 if torch.zeros(k).shape[0] > 3 else x * 2


def kinds(program) -> list[FailureType]:
    return [failure.failure_type for failure in program._report.failures]


def test_what_data_decides_is_decided_as_in_the_example_and_asserted() -> None:
    program = torch.export.draft_export(Picks(), (torch.arange(8.0), torch.tensor(5)))
    assert kinds(program) == [FailureType.DATA_DEPENDENT_ERROR] and not program._report.successful()
    assert "u0 > 3" in str(program._report) and "test_draft.py" in str(program._report)
    run = program.module()
    assert run(torch.arange(8.0), torch.tensor(6)).tolist() == [1, 2, 3, 4, 5, 6]
    with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 > 3"):
        run(torch.arange(8.0), torch.tensor(2))


def test_a_sound_program_has_nothing_to_report() -> None:
    class Adds(torch.nn.Module):
        def forward(self, x):
            x.sin_()
            return x.view(2, -1) + 1

    x = torch.ones(4)
    before = torch.get_rng_state()
    program = torch.export.draft_export(Adds(), (x,))
    assert program._report.successful() and x.tolist() == [1] * 4  # the example is not written
    assert torch.equal(before, torch.get_rng_state())
    torch.testing.assert_close(program.module()(torch.zeros(4)), torch.ones(2, 2))


def test_writes_are_followed() -> None:
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.tensor([2, 7]))

        def forward(self, x):
            row = self.count[:1]
            first = x * 10 if row.item() == 2 else x
            row.add_(1)
            return first + 1 if self.count[0].item() == 3 else first

    module = Counts()
    program = torch.export.draft_export(module, (torch.ones(2),))
    assert module.count.tolist() == [2, 7] and kinds(program) == [FailureType.DATA_DEPENDENT_ERROR] * 2
    assert program.module()(torch.ones(2)).tolist() == [11, 11]


def test_loops_over_one_line_are_reported_once() -> None:
    class Sums(torch.nn.Module):
        def forward(self, x, y):
            total = 0
            for v in (x, y):
                total = total + (v * 2 if v.item() > 10 else v + 1)
            return total

    program = torch.export.draft_export(Sums(), (torch.tensor(5), torch.tensor(3)))
    assert kinds(program) == [FailureType.DATA_DEPENDENT_ERROR]
    assert program.module()(torch.tensor(4), torch.tensor(2)) == 8


@pytest.fixture
def library():
    with torch.library._scoped_library("draft", "FRAGMENT") as lib:
        yield lib


def test_an_operator_without_a_fake_rule(library) -> None:
    library.define("joined(Tensor a, Tensor b) -> Tensor")
    library.impl("joined", lambda a, b: torch.cat([a, b]), "CPU")

    class Joins(torch.nn.Module):
        def forward(self, a, b):
            c = torch.ops.draft.joined(a, b)
            return torch.ops.draft.joined(c, b) * 2

    program = torch.export.draft_export(Joins(), (torch.ones(2), torch.ones(3)))
    assert kinds(program) == [FailureType.MISSING_FAKE_KERNEL] and list(program._report.op_profiles) == [
        "draft.joined.default"
    ]
    assert program.module()(torch.ones(2), torch.zeros(3)).tolist() == [2, 2, 0, 0, 0, 0, 0, 0]


def test_a_wrong_fake_rule(library) -> None:
    library.define("halved(Tensor a) -> Tensor")
    library.impl("halved", lambda a: (a / 2).double(), "CPU")
    library.impl("halved", lambda a: a / 2, "Meta")

    class Halves(torch.nn.Module):
        def forward(self, a):
            return torch.ops.draft.halved(a)

    program = torch.export.draft_export(Halves(), (torch.ones(2),))
    assert kinds(program) == [FailureType.MISMATCHED_FAKE_KERNEL]
    assert "Dtypes torch.float64 and torch.float32 are not equal!" in str(program._report)
    with config.patch(fake_tensor_propagate_real_tensors=True), pytest.raises(MetadataMismatchError, match="halved"):
        torch.export.export(Halves(), (torch.ones(2),))


def test_sizes_that_are_less_free_than_said() -> None:
    class Three(torch.nn.Module):
        def forward(self, x):
            assert x.shape[0] == 3
            return x * x

    program = torch.export.draft_export(Three(), (torch.ones(3, 3),), dynamic_shapes={"x": {0: torch.export.Dim("n")}})
    assert FailureType.CONSTRAINT_VIOLATION_ERROR in kinds(program)
    assert program.module()(torch.ones(3, 3)).shape == (3, 3)


def test_export_may_run_on_the_example_too() -> None:
    class Truth(torch.nn.Module):
        def forward(self, x):
            return x + 1 if bool(x.eq(0.5).any()) else x

    with config.patch(fake_tensor_propagate_real_tensors=True):
        program = torch.export.export(Truth(), (torch.zeros(3),))
    assert program.module()(torch.ones(3)).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        program.module()(torch.full((3,), 0.5))
