"""Shared by all parts.

output        stdout and stderr that may fail without ending a run
errors        mistakes that a user can fix: one sentence and an exit code
registry      callables that YAML picks by name or by dotted path
conditions    conditions that every run of a sweep must meet, in one line
config/       YAML in, validated objects out, by script; all mistakes at once
stats         intervals, a paired test, pass@k
clock         time per phase of a step
interrupts    signals that ask for an end, and somebody's code that does not answer
children      other programs, several at once, none of which outlives this one
killable      calls that may never end: in a thread that is not waited for, or a process that can be killed
console       output for the terminal: a line per step, a table of evaluations
"""
