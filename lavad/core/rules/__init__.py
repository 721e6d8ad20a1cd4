"""Rules that the scheduler and the decisions share: ledger, limits, GPUs, effects due. May import plan, cluster and below."""
