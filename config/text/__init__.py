"""LSF's files as text: lines, sections, conditions, NAME=value. May import model."""
