"""The shelf of recipes: what attempts earn, one small file each. The steps of training know none of them by name.

contract                                         what every recipe is, and the answers of a step that it pays
score, multiturn, thinktwice, ufo, pag, reflect  the recipes: mates do not know each other
choice                                           the one place that builds them by name; lib/core/config/score.py
                                                 says which settings each needs
"""
