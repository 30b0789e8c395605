"""Runs Python that a model wrote, and judges it by tests in a way that the program cannot forge: see `__main__`.

This page is read inside the jail too, where a program may find it, so it has no example of a test.

The modules, in reading order:

jail/        what runs inside a sandbox, with the protocol; the standard library alone
worker       a program goes in, a verdict comes out: the outer end of one sandbox process
isolation    which rung of protection holds here, found by attempts
pool         many workers, and the verdicts that are known already
tasks        programming tasks as rows: schema, and checks for tests that prove nothing
"""
