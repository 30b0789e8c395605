"""Runs Python that a model wrote, and judges it by tests in a way that the program cannot forge: see `__main__`.

This page is read inside the jail too, where a program may find it, so it has no example of a test.

The modules, in reading order:

errors       what a user can fix, with exit codes
quantities   numbers and units as people write them
parsing      what a model's text answers: its last code, boxed text, number
jail/        what runs inside a sandbox, with the protocol; the standard library alone
launch       rungs of protection, and how a sandbox process is started under each
worker       a program goes in, a verdict comes out: the outer end of one sandbox process
isolation    which rung of protection holds here, found by attempts
pool         many workers, and the verdicts that are known already
syntax       code of tests: its names, and what in it no program could be judged by
forms        tests in the words of unittest and pytest, as plain asserts
sources      a program with its tests, read in any of their forms
corpus       hostile programs, right ones, and texts that play for the reward, with what is due to each
benchmark    the corpus, judged by anybody's judge
adapters     the sandbox as a reward of TRL, verl and verifiers, and as a metric of lm-eval
tasks        programming tasks as rows: schema, and checks for tests that prove nothing
questions    what hidden and public tests of a task ask alike, by running them
"""
