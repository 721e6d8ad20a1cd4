"""bsub: the options, read and checked, become a job or an array. May import decide.base and decide.reserve."""
