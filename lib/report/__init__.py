"""Pages about runs, and the runs of a sweep.

layout          how a page about runs looks: style, headings, tables, pictures inside it
paired          two evaluations of the same questions, compared question by question
sweep_tables    the figures of a sweep: over seeds, between variants, and which conditions hold
sweeps          the jobs of a sweep: planned, started, recorded; the result of each run
sweep_page      those results as a page
"""
