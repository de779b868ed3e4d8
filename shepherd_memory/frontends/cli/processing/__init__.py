"""`shepherd memory process`: make facts and notes of conversations, in this process."""
