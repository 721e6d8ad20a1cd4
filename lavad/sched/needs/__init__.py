"""What a class of equal jobs needs, and the hosts as rows and columns to match it with. May import core."""
