"""Sentences of the pages that promise something, each with the tests that try to break it."""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent


class Promise(NamedTuple):
    """A sentence of a page, or its beginning, and the tests of it as ``path::function``."""

    page: str
    sentence: str
    tests: list[str]


PROMISES = [
    Promise(
        "docs/game.md",
        "**Same seed, same game**: the same truth, contexts, labels and messages in the single environment, "
        "in the vector environment",
        [
            "tests/ldp_gym/envs/test_vector.py::test_native_and_single_environments_play_the_same_game",
            "tests/ldp_gym/engine/test_posterior.py::test_single_vector_and_tape_send_the_same_messages",
        ],
    ),
    Promise(
        "docs/game.md",
        "cap of the KL in the reward, which is always finite.",
        ["tests/ldp_gym/engine/test_tape.py::test_a_judgement_is_of_the_round_that_was_shown"],
    ),
    Promise(
        "docs/train.md",
        "A prediction never changes a message.",
        ["tests/ldp_gym/engine/test_posterior.py::test_guesses_change_nothing"],
    ),
    Promise(
        "docs/reproduce.md",
        "The same command resumes a run that was stopped.",
        [
            "tests/ldp_bench/test_runner.py::test_killed_and_resumed",
            "tests/ldp_bench/test_kills.py::test_the_same_command_goes_on_to_the_same_results",
            "tests/ldp_bench/test_kills.py::test_what_was_finished_is_not_played_again",
        ],
    ),
    Promise(
        "docs/reproduce.md",
        "The same seed gives the same numbers for any number of processes.",
        ["tests/ldp_bench/test_runner.py::test_any_number_of_jobs_and_nothing_is_played_twice"],
    ),
    Promise(
        "docs/reproduce.md",
        "All learners of a game meet the same users, so their differences are paired.",
        [
            "tests/ldp_bench/test_results.py::test_learners_are_compared_with_bayes_on_the_same_episodes"
        ],
    ),
    Promise(
        "docs/reproduce.md",
        "Results of edited code have other keys than old ones: edited comments, docstrings and layout of "
        "this package leave them as they are.",
        [
            "tests/ldp_bench/test_store.py::test_a_changed_number_changes_the_fingerprint",
            "tests/ldp_bench/test_store.py::"
            "test_comments_docstrings_and_layout_do_not_change_the_fingerprint",
        ],
    ),
    Promise(
        "docs/reproduce.md",
        "A damaged cell is named and played again.",
        [
            "tests/ldp_bench/test_store.py::test_a_run_plays_a_damaged_cell_again",
            "tests/ldp_bench/test_store.py::"
            "test_a_flipped_bit_in_a_cell_is_named_by_a_run_and_by_an_export",
            "tests/ldp_gym/core/test_files.py::test_a_flipped_bit_is_noticed_wherever_it_is",
        ],
    ),
    Promise(
        "docs/reproduce.md",
        "`export` writes an episode once: the result of the code that played it last",
        [
            "tests/ldp_bench/test_store.py::test_an_export_has_the_latest_code_s_results",
            "tests/ldp_bench/test_store.py::test_an_episode_that_stands_in_several_cells_is_exported_once",
        ],
    ),
    Promise(
        "docs/reproduce.md",
        "A worker whose code differs from this machine's refuses its cells.",
        ["tests/ldp_bench/test_runner.py::test_a_worker_with_other_code_refuses_a_cell"],
    ),
]


def words(text):
    """The text with single spaces, however its lines are broken."""
    return " ".join(text.split())


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.sentence[:40])
def test_a_promise_stands_on_its_page(promise):
    """If you change the sentence of a page, change it here, and ask whether its tests still hold it."""
    page = words((ROOT / promise.page).read_text("utf-8"))
    assert words(promise.sentence) in page


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.sentence[:40])
def test_the_tests_of_a_promise_exist(promise):
    for address in promise.tests:
        path, _, name = address.partition("::")
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        assert name in [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
