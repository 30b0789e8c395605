"""Rush Hour: moves are replayed on the row's own board, golds are the shortest there are, and splits share nothing."""

import heapq
import json
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from conftest import fewer
from helpers.judges import judge_by

from lib.core.errors import ConfigError
from lib.rewards.judge import as_trl_reward
from lib.text.rush_hour import board_problem, read_moves, replay

ROOT = Path(__file__).parents[3]
SPLITS = ("train", "validation", "test")
BOTH = ("rush_hour_exact", "rush_hour_shaped")
# A is one column from the exit, behind B, which has two cells of room below it; C and D stand in the last rows
ROW = {"board": "oAABoooBoooooCCo", "size": 4, "moves": 2, "solution": ["Bv2", "A>1"]}


def judge(name="rush_hour_shaped", **section):
    return judge_by(name, list(ROW), None, **section)


def paid(text, row=ROW, name="rush_hour_shaped", **section):
    [verdict] = judge(name, **section)([text], [row])
    assert verdict.reward == pytest.approx(sum(verdict.components.values()))
    return verdict.reward


# --- the rewards


@pytest.mark.parametrize(
    ("text", "shaped", "exact", "why"),
    [
        ("Bv2 A>1", 1.0, 1, "the row's own solution"),
        ("Bv1 A>1", 1.0, 1, "another optimal one: B need not go all the way"),
        ("Bv1 Bv1 A>1", 1.0, 1, "slides that continue each other are one move"),
        ("Bv2", 0.125, 0, "first move only: .1 for 1 of 1 legal, .05 * (2 - 1) / 2 of the way"),
        ("Bv2 A>1 C<1", 0.25, 0, "an extra move: .2 / 2 solved, .1 for both moves of the solution, .05"),
        ("C>1 Bv2 A>1", 0.1 / 3 + 0.025, 0, "a wasted move in B's way: .058; B clears the row, but not as far as told"),
        ("C<1 Bv2 A>1", 0.25, 0, "a wasted move that harms nothing: .2 / 2 solved, .1, .05"),
        ("A>1", 0.0, 0, "illegal"),
        ("Bv3 A>1", 0.0, 0, "illegal, although B would be out of the way"),
        ("Bv2 A>2", 0.1, 0, "A is there, but by an illegal move: .1 / 2 legal, .05 of the way"),
        ("Bv2 A<1 A>1", 0.125, 0, "back and forth is two moves, all legal, and A is where it was"),
        ("", 0.0, 0, "nothing"),
    ],
)  # fmt: skip
def test_scores_that_a_hand_can_check(text, shaped, exact, why):
    assert paid(text) == pytest.approx(shaped), why
    assert paid(text, name="rush_hour_exact") == exact, why


def test_weights_are_options_that_sum_to_one():
    router = {"exact": 0.5, "solved": 0.2, "prefix": 0.2, "progress": 0.1}
    assert paid("Bv2", options=router) == pytest.approx(0.2 + 0.05)
    assert paid("Bv2 A>1", options=router) == pytest.approx(1)
    for wrong in ({"exact": 0.7}, {"exact": 0.9, "prefix": -0.15}):
        with pytest.raises(ConfigError, match=r"reward.options: got exact .*expected weights of 0 or more that sum to"):
            judge(options=wrong)
    with pytest.raises(ConfigError, match=r"reward.options.reading: got 'strictly', expected one of .*did you mean"):
        judge(options={"reading": "strictly"})


READ = [  # text, how the strict and the tolerant reading take it
    ("B^1 A>2", "B^1 A>2", "B^1 A>2"),
    ("B^1,A>2\nCV1", "B^1 A>2 Cv1", "B^1 A>2 Cv1"),
    ("B^01", "B^1", "B^1"),
    ("A>1 A>2 B^1", "A>3 B^1", "A>3 B^1"),
    ("A>1 A<1", "A>1 A<1", "A>1 A<1"),
    ("B U 1; a R2.", "", "B^1 A>2"),
    ("I move B^1, then A>2", "", "B^1 A>2"),
    ("B^0 A>2", "", "A>2"),
    ("B^1A>2", "", "B^1 A>2"),
    ("b^1", "", "B^1"),
    ("AB^1", "", ""),  # no car of two letters, and a board is no list of moves
    ("board 3, level 2", "", ""),
    ("A>1.5", "", ""),
    ("A>-1 A>+1", "", ""),
    ("А>1 B\u20271", "", ""),  # a Cyrillic А
    ("A>\u0661 A\uff1e1 \uff21>1", "", ""),  # an Arabic digit, full-width signs
    ("A>1\u200d1 A>1\u00ad2", "", ""),  # what cannot be seen could hide a digit
    ("A>" + "9" * 5000, "A>999", "A>999"),
    ("", "", ""),
]


@pytest.mark.parametrize(("text", "strict", "tolerant"), READ)
def test_what_each_reading_takes_for_moves(text, strict, tolerant):
    for reading, expected in (("strict", strict), ("tolerant", tolerant)):
        assert " ".join(map(str, read_moves(text, reading))) == expected


def test_a_text_without_moves_is_malformed():
    strict = judge(format="answer", options={"reading": "strict"})
    texts = [f"<answer>{inside}</answer>" for inside in ("Bv2 A>1", "so Bv2 A>1", "none")] + ["Bv2 A>1"]
    verdicts = strict(texts, [ROW] * 4)
    assert [verdict.malformed for verdict in verdicts] == ["", "not only moves", "not only moves", "no <answer> block"]
    assert [verdict.match for verdict in verdicts] == [True, False, False, False]
    tolerant = judge(format="answer")(texts, [ROW] * 4)
    assert [verdict.malformed for verdict in tolerant] == ["", "", "no moves", "no <answer> block"]
    assert [verdict.about for verdict in tolerant][:2] == ["solved by 2 moves of 2, expected 2"] * 2


def test_each_row_has_its_own_board_in_trls_form_too():
    other = {"board": "ooooAABooCBooCoo", "size": 4, "moves": 2, "solution": ["Bv1", "A>2"]}
    rows = [ROW, other, ROW, other]
    texts = ["Bv2 A>1", "Bv1 A>2", "Bv1 A>2", "Bv2 A>1"]
    for name, astray in (("rush_hour_exact", 0), ("rush_hour_shaped", 0.1)):  # ROW's B may move by one, A not by two
        made = judge(name, format="answer")
        made.check([ROW, other])
        completions = [[{"role": "assistant", "content": f"<answer>{text}</answer>"}] for text in texts]
        columns = {column: [row[column] for row in rows] for column in ROW}
        rewards = as_trl_reward(made)(prompts=["-"] * 4, completions=completions, completion_ids=[[0]] * 4, **columns)
        assert rewards == pytest.approx([1, 1, astray, 0])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"board": "oAABoooB"}, "8 cells, which is no square"),
        ({"board": None}, "board: got None, expected a text of cells"),
        ({"board": "oAoAoooBoooBooCC"}, "no car: expected two or more cells in one line"),
        ({"board": "oooBoooBoooooCCo"}, "no horizontal car A"),
        ({"board": "AoooAooBoooBooCC"}, "no horizontal car A"),
        ({"board": "ooAAoooBoooBooCC"}, "A stands at the goal already"),
        ({"board": "oAA?oooooooooooo"}, "'?' is no cell"),
        ({"size": 5}, "size: got 5, expected 4, as the board has 16 cells"),
        ({"moves": 3}, r"whose 2 legal moves solve it, expected 3 that do"),
        ({"solution": ["A>1"]}, "whose 0 legal moves do not solve it, expected 2 that do"),
        ({"solution": ["Bv2", "A>1", "C<1"]}, "whose 2 legal moves solve it"),
        ({"solution": "b down"}, "whose 0 legal moves do not solve it"),
    ],
)
def test_rows_that_are_no_puzzle_are_found_before_training(change, told):
    for name in BOTH:
        with pytest.raises(ConfigError, match=r"1 of 2 rows are no puzzle of Rush Hour: .*\(row 2\)") as caught:
            judge(name).check([ROW, ROW | change])
        assert told in str(caught.value)


def test_a_reward_without_a_board_is_no_reward():
    for name in BOTH:
        with pytest.raises(ConfigError, match="needs by name 'board'"):
            judge_by(name, ["size", "moves", "solution"], None)


def test_a_solution_may_be_one_text():
    judge().check([ROW | {"solution": "Bv2, A>1"}])
    assert paid("Bv2", ROW | {"solution": "Bv2 A>1"}) == pytest.approx(0.125)


# --- the builder


def build(out, *options, hash_seed=0):
    command = [sys.executable, ROOT / "data/build_rush_hour.py", "--out", out, *map(str, options)]
    subprocess.run(command, check=True, capture_output=True, env={"PYTHONHASHSEED": str(hash_seed)})
    return {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}


def read(files, name):
    return [json.loads(line) for line in files[f"{name}.jsonl"].splitlines()]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """At least 500 boards of each size with WHOLE=1, a few else."""
    options = ("--boards", fewer(170, 10), "--most-boards", fewer(2500, 300))
    files = build(tmp_path_factory.mktemp("rush"), *options)
    return {split: read(files, split) for split in SPLITS}


def least_moves(board):
    """The length of a shortest solution, by A* over grids of cells; at least every car in A's way has to move once."""
    size = int(len(board) ** 0.5)
    grid = tuple(board[i : i + size] for i in range(0, len(board), size))
    home = next(i for i, line in enumerate(grid) if "A" in line)

    def left(grid):
        way = grid[home].rpartition("A")[2]
        return len(set(way) - {"o"}) + (way != "")

    def slid(grid):
        """Grids one move further: in every line, a car moves into empty cells."""
        for lines, back in ((grid, lambda g: g), (tuple(map("".join, zip(*grid, strict=True))), turned)):
            for number, line in enumerate(lines):
                for car in set(line) - {"o", "x"}:
                    begin, length = line.index(car), line.count(car)
                    if length < 2:
                        continue
                    for place in range(size - length + 1):
                        reach = line[min(begin, place) : max(begin, place) + length]
                        if place != begin and set(reach) <= {car, "o"}:
                            after = line.replace(car, "o")
                            after = after[:place] + car * length + after[place + length :]
                            yield back((*lines[:number], after, *lines[number + 1 :]))

    def turned(grid):
        return tuple(map("".join, zip(*grid, strict=True)))

    number = count()
    best, queue = {grid: 0}, [(left(grid), next(number), 0, grid)]
    while queue:
        _, _, made, grid = heapq.heappop(queue)
        if left(grid) == 0:
            return made
        if made > best[grid]:
            continue
        for after in slid(grid):
            if made + 1 < best.get(after, 1_000_000):
                best[after] = made + 1
                heapq.heappush(queue, (made + 1 + left(after), next(number), made + 1, after))
    return None


@pytest.mark.parametrize("size", [4, 5, 6])
def test_every_gold_is_legal_and_no_other_solver_is_shorter(rows, size):
    some = [row for split in SPLITS for row in rows[split] if row["size"] == size]
    assert len(some) >= fewer(500, 30)
    for row in some:
        assert board_problem(row["board"]) == "" and row["size"] == size
        moves = read_moves(" ".join(row["solution"]), "strict")
        end = replay(row["board"], moves)
        assert end.solved and end.legal == len(moves) == row["moves"] == len(row["solution"]), row
        assert least_moves(row["board"]) == row["moves"] >= 2, row
        assert row["drawing"].replace("\n", "") == row["board"]
    for name in BOTH:
        judge(name).check(some)
        verdicts = judge(name)([" ".join(row["solution"]) for row in some], some)
        assert all(verdict.match and verdict.reward == pytest.approx(1) for verdict in verdicts)


def all_optimal(board, moves):
    """Optimal solutions, found by trying every move at every step; about 50 at most."""
    if moves == 0:
        return
    cars, size = sorted(set(board) - {"o", "x"}), int(len(board) ** 0.5)
    found = 0
    for car in cars:
        for arrow in "<>^v":
            for steps in range(1, size):
                [move] = read_moves(f"{car}{arrow}{steps}", "strict")
                end = replay(board, [move])
                if end.legal and end.solved and moves == 1:
                    yield [str(move)]
                elif end.legal and not end.solved:
                    for rest in all_optimal(end.board, moves - 1):
                        found += 1
                        yield [str(move), *rest]
                        if found >= 50:
                            return


def test_any_optimal_solution_earns_everything_and_nothing_else_does(rows):
    others = 0
    for row in [row for row in rows["train"] if row["moves"] <= 3][: fewer(100, 12)]:
        found = list(all_optimal(row["board"], row["moves"]))
        assert found
        others += len(found) - 1
        for solution in found:
            texts = [" ".join(moves) for moves in (solution, solution[:-1], [*solution, solution[0]])]
            for name in BOTH:
                verdicts = judge(name)(texts, [row] * 3)
                assert [verdict.match for verdict in verdicts] == [True, False, False], (row, solution)
                assert verdicts[0].reward == pytest.approx(1) and max(v.reward for v in verdicts[1:]) <= 0.25 + 1e-9
    assert others > fewer(50, 5)


def test_nothing_is_paid_without_a_legal_first_move(rows):
    """Every move of every car is tried, alone and before the solution: the shaped reward knows the legal ones."""
    for row in rows["test"][:: fewer(1, 3)]:
        cars = sorted(set(row["board"]) - {"o", "x"})
        moves = [f"{car}{arrow}{steps}" for car in [*cars, "Z"] for arrow in "<>^v" for steps in (1, 2, 3, 9)]
        for rest in ([], row["solution"]):
            texts = [" ".join([move, *rest]) for move in moves]
            first = [read_moves(text, "strict")[:1] for text in texts]
            legal = [bool(replay(row["board"], moves).legal) for moves in first]
            verdicts = judge()(texts, [row] * len(texts))
            for is_legal, verdict in zip(legal, verdicts, strict=True):
                assert (verdict.reward > 0) == is_legal
                assert verdict.reward <= 1 + 1e-9 and verdict.match == (verdict.reward > 0.26)
                assert verdict.match or verdict.components["exact"] == 0


def reachable(board):
    """All boards within the layout, by this file's own moves."""
    seen, todo = {board}, [board]
    while todo:
        now = todo.pop()
        for car in set(now) - {"o", "x"}:
            for arrow in "<>^v":
                end = replay(now, read_moves(f"{car}{arrow}1", "strict"))
                if end.legal and end.board not in seen:
                    seen.add(end.board)
                    todo.append(end.board)
    return seen


def named(board):
    """The board with letters given out in reading order, but for A."""
    letters = iter("BCDEFGHIJKLMNOPQRSTUVWXYZ")
    names = {"o": "o", "x": "x", "A": "A"}
    return "".join(names.setdefault(cell, "") or names.update({cell: next(letters)}) or names[cell] for cell in board)


def test_no_board_leads_to_a_board_of_another_file_nor_does_its_mirror_image(rows):
    where = {row["board"]: split for split in SPLITS for row in rows[split]}
    assert len(where) == sum(map(len, rows.values()))
    assert not {row["layout"] for row in rows["train"]} & {row["layout"] for row in rows["test"]}
    for row in [row for row in rows["test"] + rows["validation"] if row["size"] == 4]:
        mirror = named("".join(reversed([row["board"][i : i + 4] for i in range(0, 16, 4)])))
        for board in reachable(row["board"]) | reachable(mirror):
            assert where.get(named(board), where[row["board"]]) == where[row["board"]]


def test_sizes_and_difficulties_are_balanced_in_every_file(rows):
    limits = {4: (3, 4), 5: (4, 6), 6: (4, 7)}
    for split, share in zip(SPLITS, (0.8, 0.1, 0.1), strict=True):
        kinds = [(row["size"], row["difficulty"]) for row in rows[split]]
        assert {kinds.count(kind) for kind in set(kinds)} == {round(share * fewer(170, 10))} and len(set(kinds)) == 9
    for row in rows["train"]:
        medium, hard = limits[row["size"]]
        assert row["difficulty"] == ("easy", "medium", "hard")[(row["moves"] >= medium) + (row["moves"] >= hard)]


def test_a_seed_gives_the_same_files_again_and_another_one_others(tmp_path):
    options = ("--tiny", "--boards", 10, "--lessons", 20, "--chats", 20, "--svg", 1)
    first = build(tmp_path / "a", *options)
    assert build(tmp_path / "b", *options, hash_seed=7) == first
    assert set(first) == {"train.jsonl", "validation.jsonl", "test.jsonl", "sft.jsonl", "4x4-0.svg"}
    assert build(tmp_path / "c", *options, "--seed", 1)["train.jsonl"] != first["train.jsonl"]
    assert any("x" in row["board"] for row in read(first, "train"))


def test_lessons_solve_their_boards_and_a_part_of_the_chats_does_not(tmp_path):
    options = ("--sizes", 4, "--boards", 10, "--lessons", 60, "--chats", 60, "--slips", 0.4, "--prompt", "{drawing}")
    files = build(tmp_path, *options)
    chats = [[turn["content"] for turn in row["messages"]] for row in read(files, "sft")]
    solved = []
    for board, answer in chats:
        moves = read_moves(answer.removeprefix("<answer>").removesuffix("</answer>"), "strict")
        solved.append(replay(board.replace("\n", ""), moves).solved)
    assert len(solved) == 120 and all(solved[:60]) and 10 < sum(solved[60:]) < 40
    assert not {board.replace("\n", "") for board, _ in chats} & {row["board"] for row in read(files, "test")}


def test_pictures_are_sound(tmp_path):
    from xml.etree import ElementTree

    files = build(tmp_path, "--sizes", 4, "--boards", 10, "--svg", 2)
    boards = [row["board"] for row in read(files, "train")]
    for number in range(2):
        picture = ElementTree.fromstring(files[f"4x4-{number}.svg"])
        letters = {node.text for node in picture if node.tag.endswith("text")}
        assert letters == set(boards[number]) - {"o", "x"}
