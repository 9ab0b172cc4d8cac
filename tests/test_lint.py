"""The order of the tree, which `make lint` checks: calls run downwards, and form no wide circle."""

import pytest

import lint

pytestmark = pytest.mark.one_python

EVALUATOR = "tracer/evaluator/decide"


@pytest.mark.parametrize(
    "caller, called",
    [
        ("tracer/ring", EVALUATOR),
        ("tracer/compat/init", "tracer/guards/check"),
        ("tracer/guards/check", "tracer/torch/bridge"),
        (EVALUATOR, "tracer/torch/bridge"),
        ("tracer_shim", "tracer/torch/observe"),
        ("tracer/torch/torch", "tracer/module"),
        ("trace/db", "tui/view"),
        ("collector/decode", "trace/db"),
        ("lib/say", "main"),
    ],
)
def test_a_call_from_a_lower_to_an_upper_folder_is_reported(caller, called):
    (wrong,) = lint.upward_calls({caller: {called: {"function"}}})
    assert wrong.startswith(f"src/{caller}.c: ")
    assert f"function of src/{called}.c" in wrong


@pytest.mark.parametrize(
    "caller, called",
    [
        (EVALUATOR, "tracer/ring"),
        (EVALUATOR, "tracer_shim"),
        ("tracer/code", "tracer/compat/mend"),
        ("tracer/compat/mend", "tracer/code"),
        ("tracer/module", "tracer/torch/torch"),
        ("tracer/torch/observe", EVALUATOR),
        ("tui/view", "schema_sql"),
        ("cmd/tui", "tui"),
    ],
)
def test_a_call_from_an_upper_to_a_lower_folder_passes(caller, called):
    assert not [*lint.upward_calls({caller: {called: {"function"}}})]


def circle(*files):
    return {file: {files[at - 1]: {"function"}} for at, file in enumerate(files)}


def test_a_call_cycle_of_three_files_in_a_folder_passes():
    assert not [*lint.call_circles(circle("tui/a", "tui/b", "tui"))]


def test_a_call_cycle_of_four_files_is_reported():
    (wrong,) = lint.call_circles(circle("tui/a", "tui/b", "tui/c", "tui"))
    assert wrong.endswith("of more than 3 files: tui, tui/a, tui/b, tui/c")


def test_a_call_cycle_through_two_folders_is_reported():
    (wrong,) = lint.call_circles(circle("cmd/report", "cmd/report/html"))
    assert wrong.endswith("between folders: cmd/report, cmd/report/html")
