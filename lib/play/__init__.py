"""Self-play.

opponents     opponents, games, and the prompts that they choose
teacher       hints and solutions where the policy failed
scoreboard    counts of prompts solved by the policy, its opponent, both or neither
loss          the loss that a config asks for, and warnings about it
gspo          the steps of self-play: play, assist, credit, update, refresh
preview       what a run would do, without training
"""
