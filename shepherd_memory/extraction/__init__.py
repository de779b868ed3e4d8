"""From what a user said to facts and context: the queue, the worker, the prompt, the answer, the guard."""
