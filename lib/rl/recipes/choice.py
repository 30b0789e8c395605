"""The recipe that a config asks for."""

from collections.abc import Callable

from lib.core.config import ScoreTrain
from lib.rl.recipes.contract import CorrectionRecipe
from lib.rl.recipes.multiturn import MultiTurn
from lib.rl.recipes.pag import Pag
from lib.rl.recipes.reflect import Reflect
from lib.rl.recipes.score import Score
from lib.rl.recipes.thinktwice import ThinkTwice
from lib.rl.recipes.ufo import Ufo

NAMES: dict[str, Callable[[ScoreTrain], CorrectionRecipe]] = {
    "score": Score, "multiturn": MultiTurn, "thinktwice": ThinkTwice, "ufo": Ufo, "pag": Pag,
    "reflect": Reflect,
}  # fmt: skip


def recipe_of(train: ScoreTrain) -> CorrectionRecipe:
    """Returns the recipe that `train.recipe` names."""
    return NAMES[train.recipe](train)
