"""Decisions: an ask or a report and the cluster give events, or a refusal in LSF's words. May import all of core."""
