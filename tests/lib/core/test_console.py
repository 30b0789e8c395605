import pytest

from lib.core.console import Screen, format_trouble, with_best

RATES = {"acc_attempt1": 0.5, "acc_attempt2": 0.75, "delta": 0.25, "i_to_c": 0.3, "c_to_i": 0.05}
ENDS = {f"{key}_ci95": [value - 0.01, value + 0.01] for key, value in RATES.items()}
FORMED = {"well_formed_attempt1": 0.983, "well_formed_attempt2": 0.612}
EVALUATION = {"when": "after_stage2", "stage": 2, "step": 3, "n": 20, "prompts": 10, "temperature": 1.0,
              **RATES, **ENDS}  # fmt: skip


@pytest.fixture
def told(capsys):
    def of(method, *arguments):
        getattr(Screen(), method)(*arguments)
        return capsys.readouterr().out

    return of


def test_what_is_well_formed_is_told_of_both_attempts(told):
    step = {"stage": 2, "step": 1, "steps": 9, "reward_attempt1": 0.0, "reward_attempt2": 0.0, "acc_attempt1": 0.0,
            "acc_attempt2": 0.0, "gap": 0.0, "kl_attempt1": 0.0, "kl_attempt2": 0.0, "length_attempt1": 9.0,
            "length_attempt2": 9.0, "truncated": 0.0, "grad_norm": 1.0, "tokens_per_second": 9.0,
            "zero_advantage": 0.814}  # fmt: skip
    line = told("step", step | FORMED, 5)
    assert "  attempt 1 0 %  attempt 2 0 % (+0)  length 9 9  kl 0.0000 0.0000  9 tok/s  " in line
    assert "  81 % without advantage  formed 98 % 61 %  " in line and "cut" not in line
    assert "  kl - 0.0000  " in told("step", {key: step[key] for key in step if key != "kl_attempt1"} | FORMED, 5)
    quiet = told("step", step | {"zero_advantage": 0.4, "truncated": 0.2}, 5)
    assert "  9 tok/s  cut 20 %  5s left" in quiet
    assert "well-formed 98.3 % 61.2 %, n = 20" in told("evaluation", EVALUATION | FORMED)
    table = told("table", [{**EVALUATION, "when": "pretrain"}, EVALUATION | FORMED], "a run")
    lines = [line.split() for line in table.splitlines() if line.strip()]
    assert any("well-" in line for line in lines)
    assert next(line for line in lines if line[:3] == ["after", "stage", "II"])[-2:] == ["98.3", "%"]
    assert any(line[-2:] == ["61.2", "%"] for line in lines)
    assert next(line for line in lines if line[:1] == ["pretrain"])[-1] == "-"  # of an earlier version
    assert max(map(len, table.splitlines()[:-1])) <= 80


def test_one_question_alone_has_a_delta_without_an_interval(told):
    table = told("table", [EVALUATION | {"delta_ci95": [None, None]}], "a run")  # as a file has what is no number
    assert "+25.0" in table and "+24.0" not in table and "74.0 76.0" in table


def test_a_revision_beside_a_fresh_draw_is_told_where_it_was_measured(told):
    rates = {"revised_after_wrong": 0.348, "fresh_after_wrong": 0.289, "revised_minus_fresh": 0.059}
    row = EVALUATION | FORMED | rates | {f"{key}_ci95": [value - 0.04, value + 0.04] for key, value in rates.items()}
    assert ", revision - fresh draw +5.9, well-formed" in told("evaluation", row)
    table = told("table", [{**EVALUATION, "when": "pretrain"}, row], "a run")
    assert (
        "after stage II: after a wrong attempt 1 the revision is right 34.8 % [30.8 38.8], a fresh attempt 1 28.9 % "
        "[24.9 32.9]: +5.9 [+1.9 +9.9]"
    ) in table
    alone = told("table", [row | {f"{key}_ci95": [None, None] for key in rates}], "a run")
    assert "attempt 1 the revision is right 34.8 % [of one question], a fresh" in alone
    assert table.count("fresh") == 1 and "fresh" not in told("evaluation", EVALUATION | FORMED)


@pytest.mark.parametrize(
    ("shares", "warned"),
    [
        ({"truncated_attempt1": 0.1, "truncated_attempt2": 0.1}, ""),
        ({"truncated_attempt1": 0.02, "truncated_attempt2": 0.46}, "46 % of attempt 2|max_new_tokens_attempt2"),
        ({"truncated_attempt1": 0.2, "truncated_attempt2": 0.2, "truncated_attempt3": 0.3},
         "attempt 1 and 20 % of attempt 2 and 30 % of|max_new_tokens_attempt1 and generation.max_new_tokens_attempt2"),
        ({"truncated": 0.76}, "76 % of the answers|max_new_tokens"), ({"truncated": 0.0}, ""), ({}, ""),
    ],
)  # fmt: skip
def test_cut_answers_are_told_with_the_budget_to_raise(shares, warned):
    text = " ".join(format_trouble(shares))
    assert bool(text) == bool(warned) and all(part in text for part in warned.split("|"))
    assert not warned or f"{warned.rpartition('|')[2]}, or set reward.accept_cut" in text


def test_the_line_of_a_step_is_explained_once(capsys):
    row = {"step": 1, "steps": 9, "equal_groups": 0.0, "length": 9.0, "truncated": 0.0, "tokens_per_second": 9.0}
    screen = Screen()
    screen.step(row, 5)
    screen.step(row | {"step": 2}, 5)
    assert capsys.readouterr().out.count("metrics.jsonl") == 1


def test_what_is_well_formed_is_told_of_single_answers(told):
    step = {"step": 1, "steps": 9, "solved": 0.5, "equal_groups": 0.0, "length": 9.0, "truncated": 0.0,
            "grad_norm": 1.0, "tokens_per_second": 9.0, "well_formed": 0.87}  # fmt: skip
    assert "  right 0 %  reward 0.000  length 9  9 tok/s  formed 87 %  5s left" in told("step", step, 5)
    row = {"when": "after_training", "step": 3, "n": 20, "prompts": 10, "temperature": 1.0, "acc": 0.5,
           "acc_ci95": [0.4, 0.6], "pass_at_k": [{"k": 1, "pass": 0.5, "pass_ci95": [0.4, 0.6]}],
           "well_formed": 0.87, "well_formed_ci95": [0.8, 0.9]}  # fmt: skip
    assert "well-formed 87.0 %, n = 20" in told("evaluation", row)
    table = told("table", [row], "a run")
    assert "87.0 %" in table and "opponent" not in table and "games won" not in table  # there were no games
    games = {"win_rate": 0.5, "win_rate_ci95": [0.4, 0.6], "opponent_acc": 0.25, "opponent_acc_ci95": [0.2, 0.3]}
    assert "25.0 %" in told("table", [row, row | games], "a run")


def test_a_table_in_a_file_is_as_wide_as_its_figures(told):
    """Nothing of five attempts is cut, although a file has no width and 80 columns are too few."""
    rates = {f"acc_attempt{number}": 0.5 for number in range(1, 9)}
    ends = {f"{key}_ci95": [0.4, 0.6] for key in rates}
    table = told("table", [EVALUATION | rates | ends], "a run")
    assert "…" not in table and table.count("40.0 60.0") == 8


def test_a_base_that_never_keeps_the_format_is_named():
    never = {f"{what}_attempt{number}": 0.0 for what in ("well_formed", "truncated") for number in (1, 2)}
    assert "no answer is well-formed" in "".join(format_trouble(never))
    assert len([*format_trouble({"well_formed": 0.0, "truncated": 0.2})]) == 2
    assert len([*format_trouble({"well_formed": 0.0, "truncated": 0.2}, accepts_cut=True)]) == 1
    assert not [*format_trouble({"well_formed": 0.01, "truncated": 0.0})]


@pytest.mark.parametrize(
    ("folder", "label"),
    [
        ("stage1/step_0", "the start"),
        ("stage1/step_2", "step 2 of stage I"),
        ("stage1/step_4", "the end of stage I"),
        ("stage2/step_2", "step 2"),
    ],
)
def test_the_best_of_stage_two_is_named_by_where_it_was(folder, label):
    """Stage II starts from the end of stage I, or has the best of stage I where attempt 1 fell at its end."""
    moments = [("pretrain", 1, 0), ("step", 1, 2), ("after_stage1", 1, 4), ("step", 2, 2), ("after_stage2", 2, 4)]
    rows = [{"when": when, "stage": stage, "step": step} for when, stage, step in moments]
    table = with_best(rows, {2: folder}.get)
    assert [row["label"] for row in table if row["when"] == "best"] == [f"  best: {label}"]
