"""What the columns of an export's lines hold."""

TEXT, NUMBER, MOMENT, MOMENT_OR_NONE, JSON = "text", "number", "moment", "moment or null", "json"
