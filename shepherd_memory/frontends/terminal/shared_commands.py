"""Names and help lines of the commands that a chat shares with the command line."""

# Data only: `shepherd --help` loads this, and nothing heavy with it.
SHARED = {
    "provider": "Show, change and switch model providers.",
    "model": "Show or choose the model of the provider in use.",
    "config": "Show and change settings.",
    "facts": "Show and change facts.",
    "context": "Show and change questions and their answers.",
    "documents": "Show and change what is stored verbatim.",
    "recall": "Find what a query is about.",
    "sessions": "List, search, read and name conversations.",
    "forget": "Delete one thing for good.",
    "queue": "Show and change what waits for extraction.",
    "whoami": "Say whose memory this is, and why.",
}
