"""The shelf of feedback: what the user says between two attempts, in place of one fixed sentence.

It is prompt, never trained, and it says nothing of the row but what its kind is for: a verdict, a public test, an
output.

contract                      what every kind is
verdict, tests, tool, review  the kinds: mates do not know each other
choice                        the one place that builds them by name
"""
