"""Operations on a whole memory: forget, erase, export, import, re-index, status."""
