"""Text as it is stored, compared and shown: no input or output, no database."""
