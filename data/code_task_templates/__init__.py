"""Templates of programming tasks, one module per topic. `data/build_code_tasks.py` makes tasks of them."""
