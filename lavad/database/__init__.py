"""`lava db`: a store is checked, backed up, restored and upgraded. May import replay (its options), configure, store and core."""
