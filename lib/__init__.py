"""A book of nine parts, in reading order. The page of each part (its `__init__.py`) has the order of its modules.

At every level a module refers back only, those named on one line do not know each other, and no one imports a script,
but for the entry scripts, which import `reward_function`. tests/house/test_order.py keeps all this.

core/         shared by all parts: errors, names, configs, statistics, the terminal
run/          one run, on disk and over processes: its folder, checkpoints, streams, dashboards
text/         strings in, strings out: numbers, answers, formats, chats, data sets
model/        tensors: a frozen base with an adapter, the policy
rewards/      judging what a model wrote
generators/   sources of text: the policy, a server, a model next to it; caching and selecting what they wrote
tools/        functions that a model may call, and the loop in which it calls them
rl/           the algorithm of SCoRe, and what it shares with self-play: prompts, trees, credit, losses, evaluation
play/         self-play: opponents, teachers, their games, and the steps of GSPO
"""
