"""The boundary to a database, and the rows that every table depends on."""
