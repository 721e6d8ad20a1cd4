"""LSF's single-dash options, and what commands take beside them. May import client."""
