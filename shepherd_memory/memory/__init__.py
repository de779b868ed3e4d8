"""What is remembered of a user: facts, context, documents, and what they belong to."""
