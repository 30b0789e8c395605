"""What several tests and benchmarks need: servers, processes, kills, tiny models, a second way to update."""
