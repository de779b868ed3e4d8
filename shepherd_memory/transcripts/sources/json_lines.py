"""Files that are lines of JSON: they are read as they are."""

from typing import BinaryIO


class JsonLines:
    """A kind of transcript that is written as one JSON object a line."""

    suffix = ".jsonl"

    def open(self, file: BinaryIO) -> BinaryIO:
        """The file itself: a place in it is a place among its lines."""
        return file
