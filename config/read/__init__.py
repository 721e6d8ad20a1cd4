"""A folder of LSF's files becomes one ClusterConfig. May import all other rooms but write."""
