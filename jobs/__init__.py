"""Why a person starts Stopgap: one verb per file."""
