"""SCoRe, and what it shares with self-play and supervised fine-tuning.

reviews       what the policy writes about an attempt before the next one
prompts       the prompts of an example, token in and token out
hints         a teacher's hints, cleaned for showing, or dropped
feedback/     the shelf: the user's message between two attempts
corrections   the prompts of several attempts: each continues the one before it
tool_prompts  the prompts of chats in which the policy calls tools
tree          groups of answers to a prompt, and of answers to what follows an answer: sampled, judged
batching      a tree as sequences that score every answer once, in micro-batches
teachers      models whose distributions are distilled, and whether they can be
distill       a teacher's log-probs of the tokens that the policy wrote
probe         checks that sampling, scoring and a model's own forward agree on log-probs
credit        advantages of the answers of a step, and what they do to their tokens
losses        KL estimators, the losses of SCoRe, of GSPO and its relatives, that of a micro-batch: sums, never means
step          the optimizer steps on a step's answers: within memory, checked before they are applied
evaluation    held-out accuracy of single answers and of several attempts, with intervals
sequential    attempts one after another against attempts side by side
swaps         attempt 2 after the first attempt to another question
served        both attempts of a model behind a URL, under conditions that tell correction from luck
replay        a buffer of prompts worth another look, drawn by an upper confidence bound
curriculum    draws the prompts of a step, and learns from their outcomes
log_rows      groups as rows of the logs: texts, numbers
tokens        log-probs, ratios and weights of single tokens, for the logs
checks        what a colleague would notice in a run's numbers: rules, and the setting to change
watch         alarms when a check begins to fire and when it ends; held-out accuracy against its best
recipes/      the shelf: the reward of each attempt
measures      metrics of a step of several attempts
supervised    TRL's SFTTrainer over labelled examples: its schedule, its steps, the time that they take
plan          the work ahead of a run: steps, evaluations, completions, tokens at most
task          loads what a config describes: data, judge, tokenizer, prompts, policy
session       everything that an RL run does around its algorithm
score         the steps of SCoRe: sample, credit, update, evaluate
estimate      the memory that a run will need
preview       what a run would do, without training
"""
