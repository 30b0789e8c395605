"""Pages about runs, and tables of evaluations and sweeps: reads run folders, and nothing in lib imports it.

paired          two evaluations of the same questions, compared question by question
blocks          the elements of a page, as plain data
kinds           how the runs of each script are shown: charts, columns, sentences
run_folder      reads a run directory, finished or not, and follows it
curves          charts as data
facts           settings, machine, and time by phase of a run
rollouts        every sampled text, indexed and in compressed parts
alarms          what happened and when, a text that shows it, what to change
sections        tables, differences, games, curves
page            sections by templates, in one file (static/, templates/)
served          the page of models behind URLs
terminal, live  the same in a terminal; served, and what is new as it trains
sweep_tables    the figures of a sweep: over seeds, between variants, and which conditions hold
sweep_page      those results as a page
"""
