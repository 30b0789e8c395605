"""SCoRe, and what it shares with self-play.

reviews       what the policy writes about an attempt before the next one
prompts       the prompts of an example, token in and token out
hints         what a teacher says, made fit to be shown, or dropped
feedback/     the shelf: what the user says between two attempts
corrections   the prompts of several attempts: each continues the one before it
tree          groups of answers to a prompt, and of answers to what follows an answer: sampled, judged
batching      a tree as sequences that score every answer once, in micro-batches
teachers      who teaches tokens, and whether it can
distill       what a teacher says of the tokens that the policy wrote
probe         whether sampling, scoring and a model's own forward give a token one log-prob
credit        advantages of the answers of a step, and what they do to their tokens
losses        KL estimators, the losses of SCoRe, of GSPO and its relatives, that of a micro-batch: sums, never means
step          the optimizer steps on a step's answers: within memory, checked before they are applied
evaluation    held-out accuracy of single answers and of several attempts, with intervals
sequential    attempts one after another against attempts side by side
swaps         attempt 2 after first attempts that are not its own
replay        a buffer of prompts worth another look, drawn by an upper confidence bound
curriculum    which prompts a step draws, and what became of them
ledger        groups in the books: rows of texts, rows of numbers
tokens        log-probs, ratios and weights of single tokens, for the books
checks        what a colleague would notice in a run's numbers: rules, and which key to turn
watch         alarms where a check begins to hold, and where it ends; held-out answers beside their best
recipes/      the shelf: what attempts earn
measures      what a step of several attempts tells of its answers
plan          what a run has before it: steps, evaluations, completions, tokens at most
task          a config made real: data, judge, tokenizer, prompts, policy
session       what every RL run does around its algorithm
score         the steps of SCoRe: sample, credit, update, evaluate
estimate      the memory that a run will need
preview       what a run would do, without training
"""
