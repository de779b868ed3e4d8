"""Archives: sessions as markdown, always made from the stored documents, on request or as files."""
