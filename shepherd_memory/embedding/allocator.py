"""Memory that is freed goes back to the system, where the C library is glibc."""

from contextlib import suppress

M_MMAP_THRESHOLD = -3
LARGE_BLOCK_BYTES = 1_048_576


def give_back_large_blocks() -> None:
    """Have each large block given back when it is freed.

    Else the threshold grows with the blocks, up to 32 MB, and each thread keeps in a heap of its own what it
    once needed: half a gigabyte where eight of them embedded.
    """
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)


def give_back_freed_memory() -> None:
    """Give back what is free already, such as the 60 MB that loading a model leaves."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
