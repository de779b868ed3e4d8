"""The spool: files on this machine in which delivered exchanges wait until the database takes them."""
