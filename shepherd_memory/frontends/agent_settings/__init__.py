"""Settings files of agents, changed in what concerns us and in nothing else."""
