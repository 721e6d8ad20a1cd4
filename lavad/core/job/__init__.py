"""Records of jobs: what was asked for (spec), what is so (job), and rules about one job alone. May import lang."""
