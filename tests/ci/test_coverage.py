"""The table of coverage: files add up to packages, packages under the bar are named, lines that no test runs are listed."""

import importlib.util
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / ".ci" / "coverage.py"


@pytest.fixture
def coverage():
    spec = importlib.util.spec_from_file_location("coverage_table", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def facts(lines: int, missing: list[int]) -> dict:
    return {"summary": {"num_statements": lines, "covered_lines": lines - len(missing)}, "missing_lines": missing}


FOUND = {
    "pullback/__init__.py": facts(10, []),
    "pullback/core/tensor.py": facts(60, [3, 4]),
    "pullback/core/node.py": facts(40, [7]),
    "pullback/ops/reduce/scans.py": facts(20, [1, 2, 3]),
}


def test_files_add_up_to_packages(coverage):
    assert coverage.totals(FOUND) == {"(root)": (10, 10), "core": (100, 97), "ops": (20, 17)}


def test_packages_under_the_bar_are_named(coverage):
    counts = coverage.totals(FOUND)
    assert coverage.under(counts) == ["ops"]
    rows = coverage.table(counts).splitlines()
    assert rows[1].split() == ["ops", "20", "17", "85.0%", "under", "the", "bar"]
    assert rows[-1].split() == ["all", "130", "124", "95.4%"]


def test_lines_that_no_test_runs_are_listed(coverage):
    assert coverage.missing(FOUND, "core").splitlines() == [
        "    2 pullback/core/tensor.py: 3 4",
        "    1 pullback/core/node.py: 7",
    ]


def test_an_empty_package_is_whole(coverage):
    assert coverage.share((0, 0)) == 100.0
