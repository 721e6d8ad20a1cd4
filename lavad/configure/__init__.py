"""From the site's files (package config) to what the core decides with. May import config, store and core."""
