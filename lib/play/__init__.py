"""Self-play.

opponents     opponents, games, and the prompts that they choose
teacher       hints and solutions where the policy failed
scoreboard    who solved what: the policy, its opponent, both or neither
recipe        what a config of self-play comes to: its loss, and what to know before
gspo          the steps of self-play: play, assist, credit, update, refresh
preview       what a run would do, without training
ask           some rows answered, helped and judged, without training
"""
