"""Pages about runs, and the runs of a sweep.

paired          two evaluations of the same questions, compared question by question
blocks          what a page is made of, as plain data
kinds           how the runs of each script are shown: charts, columns, sentences
run_folder      a run directory, read as far as it came, and again what is new
curves          charts as data
facts           what a run was: settings, machine, where its time went
rollouts        every sampled text, indexed and in compressed parts
flow            from attempt 1 to the last: right, wrong, malformed
sections        alarms, tables, differences, games, curves
page            sections by templates, in one file (static/, templates/)
terminal, live  the same in a terminal; served, and what is new as it trains
sweep_tables    the figures of a sweep: over seeds, between variants, and which conditions hold
sweeps          the jobs of a sweep: planned, started, recorded; the result of each run
sweep_page      those results as a page
"""
