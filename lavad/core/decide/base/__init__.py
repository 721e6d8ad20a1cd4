"""Shared parts of all decisions: answers, job drafts, the selection of jobs. Imports no other room of decide."""
